//! Errors of pipes and channels.

use crate::error::without_its_value;

/// An impossible capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// The capacity is 0.
    #[error("a pipe for 0 messages can carry none: ask for at least 1")]
    Zero,
    /// The capacity does not fit into memory.
    #[error(
        "a pipe for {asked} messages of {size} bytes does not fit into memory: \
         ask for fewer, or for an unbounded pipe"
    )]
    TooLarge {
        /// The messages asked for.
        asked: usize,
        /// The size of one.
        size: usize,
    },
}

/// A value that a full bounded pipe has refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(pub T);

/// The other end is gone; a sender gets its value back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed<T = ()>(pub T);

/// A value cannot be sent now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// The pipe is full.
    Full(T),
    /// The receiver is gone.
    Closed(T),
}

/// No value was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryRecvError {
    /// No value is available now.
    #[error("nothing has been sent yet")]
    Empty,
    /// Everything was received, and every sender is gone.
    #[error("every sender is gone and everything was received")]
    Closed,
}

/// No value was received in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecvTimeoutError {
    /// The time is up.
    #[error("nothing was sent in time")]
    Timeout,
    /// Everything was received, and every sender is gone.
    #[error("every sender is gone and everything was received")]
    Closed,
}

const FULL: &str = "the pipe is full: its reader has a whole pipe still to read";
const CLOSED: &str = "the other end of the pipe is gone";

without_its_value! {
    Full { Self(_) => "Full", FULL }
}
without_its_value! {
    Closed { Self(_) => "Closed", CLOSED }
}
without_its_value! {
    TrySendError { Self::Full(_) => "Full", FULL, Self::Closed(_) => "Closed", CLOSED }
}
