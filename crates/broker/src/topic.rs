//! Topics.

pub(crate) mod catalog;
pub(crate) mod durable_store;
pub(crate) mod entry;
pub(crate) mod expiry;
pub(crate) mod feed_subscriptions;
pub(crate) mod record_store;
pub(crate) mod sequences;
pub(crate) mod sow_topic;
