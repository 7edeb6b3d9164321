//! Errors of the client.

use crate::server_address::ServerAddressError;
use lanecast_wire::command::{HeaderError, PROTOCOL_VERSION};
use std::any::Any;
use std::io;
use std::sync::Arc;

/// Errors of calls.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientError {
    /// Invalid settings.
    #[error("bad settings: {0}")]
    Settings(&'static str),
    /// The settings have an invalid address of a server.
    #[error("bad settings: {server:?} is {error}")]
    Address {
        /// The invalid text.
        server: String,
        /// The expected form.
        error: ServerAddressError,
    },
    /// Invalid query.
    #[error("bad query: {0}")]
    Query(&'static str),
    /// The server cannot be reached.
    #[error("cannot connect to {server}: {error}")]
    Connect {
        /// The address.
        server: String,
        /// The system's error.
        error: Arc<io::Error>,
    },
    /// The connection has ended: by the server, by its host, or between.
    #[error("the connection has ended: {0}")]
    Ended(Arc<io::Error>),
    /// The server or the network is down: several heartbeats are missing.
    #[error("the server has been silent for {seconds} s: it or the network is down")]
    Silent {
        /// Duration of the silence.
        seconds: u64,
    },
    /// The server refused the request.
    #[error("{what}: the server says: {reason}")]
    Refused {
        /// The request.
        what: String,
        /// The server's reason.
        reason: String,
    },
    /// The server speaks another version of the command protocol.
    #[error(
        "cannot log on: the server speaks version {server} of the command protocol, this client \
         version {PROTOCOL_VERSION}: use one version of lanecast at both ends"
    )]
    ProtocolVersion {
        /// The server's version.
        server: u64,
    },
    /// The server did not answer in time.
    #[error("{what}: no answer within {seconds} s")]
    NoAnswer {
        /// The request.
        what: String,
        /// The timeout.
        seconds: u64,
    },
    /// The connection was lost before the answer, and repeating the request could execute it twice.
    #[error(
        "{what}: the connection was lost before the answer; check whether it was done, or try again"
    )]
    Interrupted {
        /// The request.
        what: String,
    },
    /// The connection was lost before messages were acknowledged, and the client has no name.
    #[error(
        "{0} unacknowledged messages may be lost with the connection: give the client a name, and \
         it sends such messages again"
    )]
    Unsure(u64),
    /// Too many bytes are unacknowledged. The message was not published.
    #[error(
        "{bytes} bytes of messages are unacknowledged, which is the limit: publish this \
         message later, or raise unacknowledged_bytes_max"
    )]
    Full {
        /// The limit.
        bytes: usize,
    },
    /// A message is longer than the limit of unacknowledged bytes.
    #[error("a message of {bytes} bytes is too long: {limit} bytes may be unacknowledged")]
    TooLong {
        /// The message's length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The server has a later sequence number of this name than the client has published.
    #[error(
        "another program publishes as {name}: give each a name of its own, or the server takes \
         their messages for repetitions"
    )]
    NameTaken {
        /// The name.
        name: String,
    },
    /// Received bytes violate the protocol.
    #[error("the server sent an invalid message: {0}")]
    Garbage(HeaderError),
    /// The answer to a query is longer than the limit of unread bytes.
    #[error(
        "{what}: the answer has more than {limit} bytes: ask for fewer records, by a filter, top \
         and skip, or raise unread_bytes_max"
    )]
    AnswerTooLong {
        /// The request.
        what: String,
        /// The limit.
        limit: usize,
    },
    /// Too many unread events.
    #[error("more than {0} bytes of messages are unread: read them before the next request")]
    Overrun(usize),
    /// A callback of the application panicked, or the client itself. The session has ended.
    #[error("{what} panicked: {message}")]
    Panicked {
        /// The code that panicked.
        what: &'static str,
        /// Message of the panic.
        message: String,
    },
    /// The runtime of the asynchronous client was shut down.
    #[error("the runtime that drives the client was shut down: close the client before")]
    RuntimeEnded,
    /// The client was closed.
    #[error("the client was closed")]
    Closed,
}

impl From<HeaderError> for ClientError {
    fn from(error: HeaderError) -> Self {
        Self::Garbage(error)
    }
}

impl ClientError {
    pub(crate) fn ended(kind: io::ErrorKind, why: &str) -> Self {
        io::Error::new(kind, why.to_owned()).into()
    }

    /// The error for a caught panic.
    pub(crate) fn panicked(what: &'static str, panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Self::Panicked { what, message: text.unwrap_or_else(|| "no message".to_owned()) }
    }
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        Self::Ended(Arc::new(error))
    }
}
