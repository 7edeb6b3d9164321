//! What can go wrong.

use lanecast_wire::command::HeaderError;
use std::io;

/// Why a call did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server cannot be reached.
    #[error("cannot connect to {server}: {error}")]
    Connect {
        /// Where it should be.
        server: String,
        /// Why.
        error: io::Error,
    },
    /// The connection has ended: by the server, by its host, or between.
    #[error("the connection has ended: {0}")]
    Ended(io::Error),
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
    /// What came is no message of the protocol.
    #[error("the server sent what makes no sense: {0}")]
    Garbage(#[from] HeaderError),
    /// More came than is kept while waiting for an answer.
    #[error("more than {0} bytes of messages wait: read them before asking for more")]
    Overrun(usize),
}
