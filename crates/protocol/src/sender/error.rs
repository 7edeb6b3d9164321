//! Errors of publishing and of adding topics.

use lanecast_wire::net::NAME_MAX;

/// Why a message cannot be staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    /// Back-pressure: receivers have not read enough yet.
    #[error("the window is full: receivers have not read enough yet")]
    WindowFull,
    /// The message is too long.
    #[error("a message may have {longest} bytes at most")]
    TooLong {
        /// The longest message, in bytes.
        longest: usize,
    },
    /// No topic has this number.
    #[error("no topic has this number")]
    NoSuchTopic,
    /// The session is closed.
    #[error("the session is closed")]
    Closed,
}

/// Why a topic cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    /// The name is empty or too long.
    #[error("a topic name has 1 to {NAME_MAX} bytes")]
    Name,
    /// The session has as many topics as it may.
    #[error("the session has {max} topics already; raise its limit of topics")]
    TooMany {
        /// The most topics.
        max: usize,
    },
}
