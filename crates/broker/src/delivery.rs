//! Delivery: from a message to the send queues of its subscribers. Knows clients by their records,
//! and no socket.
//!
//! Path: matcher and patterns find subscriptions → field selections → fan-out → send queues.

pub(crate) mod fanout;
pub(crate) mod field_selection;
pub(crate) mod matcher;
pub(crate) mod patterns;
pub(crate) mod subscriptions;
