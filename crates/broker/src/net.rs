//! Connections: accepting, reading frames, writing bytes. Runs on the server's thread, knows the
//! limits of connections, and no topic.
//!
//! In: listeners → connection (frames from a byte stream or WebSocket) → the server's callback.
//! Out: a send queue's slices → connection → byte stream.

pub(crate) mod connection;
pub(crate) mod listeners;
pub(crate) mod network;
pub(crate) mod pending;
pub(crate) mod poller;
pub(crate) mod rejection;
pub(crate) mod source;
pub(crate) mod websocket;
