//! Topics: the catalog, records of SOW topics, views, and the storage of durable topics. Delivers
//! through a [`MessageSender`](crate::delivery::fanout::MessageSender), and knows no socket.
//!
//! A message goes to the catalog → a transient topic, or a SOW topic → its record store (in memory,
//! or through the durable store) → the subscribers.

pub(crate) mod catalog;
pub(crate) mod checkpoint;
pub(crate) mod configured;
pub(crate) mod durable_store;
pub(crate) mod removal;
pub(crate) mod sequences;
pub(crate) mod sow_context;
pub(crate) mod sow_subscribers;
pub(crate) mod sow_topic;
pub(crate) mod transient;
pub(crate) mod views;
