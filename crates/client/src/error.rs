//! What can go wrong.

use crate::server_address::ServerAddressError;
use lanecast_wire::command::HeaderError;
use std::io;
use std::sync::Arc;

/// Why a call did not do what it should.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClientError {
    /// The settings make no sense.
    #[error("bad settings: {0}")]
    Settings(&'static str),
    /// The settings name a server in a way that makes no sense.
    #[error("bad settings: {server:?} is {error}")]
    Address {
        /// What they name.
        server: String,
        /// How to write it.
        error: ServerAddressError,
    },
    /// The question makes no sense.
    #[error("bad question: {0}")]
    Question(&'static str),
    /// The server cannot be reached.
    #[error("cannot connect to {server}: {error}")]
    Connect {
        /// Where it should be.
        server: String,
        /// Why.
        error: Arc<io::Error>,
    },
    /// The connection has ended: by the server, by its host, or between.
    #[error("the connection has ended: {0}")]
    Ended(Arc<io::Error>),
    /// Nothing has come for so long that the server, or the way to it, must be gone.
    #[error("the server has been silent for {seconds} s: it or the network is down")]
    Silent {
        /// For how long.
        seconds: u64,
    },
    /// The server does not do it.
    #[error("{what}: the server says: {reason}")]
    Refused {
        /// What was asked for.
        what: String,
        /// Why it is not done.
        reason: String,
    },
    /// The server does not answer.
    #[error("{what}: no answer within {seconds} s")]
    NoAnswer {
        /// What was asked for.
        what: String,
        /// For how long it was waited.
        seconds: u64,
    },
    /// The connection broke when this was on its way, and doing it twice could be wrong.
    #[error("{what}: the connection broke meanwhile; see whether it was done, or ask again")]
    Interrupted {
        /// What was asked for.
        what: String,
    },
    /// The connection broke before messages were acknowledged, and the client has no name.
    #[error(
        "{0} messages were on their way when the connection broke, and may be lost: give the \
         client a name, and such messages are sent again"
    )]
    Unsure(u64),
    /// So much is not acknowledged yet that the message cannot be kept as well. It was not taken.
    #[error(
        "{bytes} bytes of messages wait to be acknowledged, which is the limit: publish this \
         message later, or allow more"
    )]
    Full {
        /// The limit.
        bytes: usize,
    },
    /// A message is longer than all that may be kept.
    #[error("a message of {bytes} bytes is too long: {limit} may wait to be acknowledged")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The server knows a later message of this name than the client has published.
    #[error(
        "another program publishes as {name}: give each a name of its own, or the server takes \
         their messages for repetitions"
    )]
    NameTaken {
        /// The name.
        name: String,
    },
    /// What came is no message of the protocol.
    #[error("the server sent what makes no sense: {0}")]
    Garbage(HeaderError),
    /// More came than may wait to be read.
    #[error("more than {0} bytes of messages wait: read them before asking for more")]
    Overrun(usize),
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
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        Self::Ended(Arc::new(error))
    }
}
