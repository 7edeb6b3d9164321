//! Connections.

pub(crate) mod byte_stream;
pub(crate) mod connection;
pub(crate) mod listeners;
pub(crate) mod pending;
pub(crate) mod poller;
pub(crate) mod source;
pub(crate) mod websocket;
