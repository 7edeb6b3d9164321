//! Bytes that wait to be sent: a client's send queue, in memory and on disk. Knows neither sockets
//! nor topics.

pub(crate) mod disk_ring;
pub(crate) mod offline_queue;
pub(crate) mod send_queue;
pub(crate) mod slow_consumer;
pub(crate) mod unread_replies;
