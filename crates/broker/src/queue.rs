//! Bytes that wait for clients.

pub(crate) mod disk_ring;
pub(crate) mod offline_queue;
pub(crate) mod send_queue;
pub(crate) mod slow_consumers;
pub(crate) mod unread_replies;
