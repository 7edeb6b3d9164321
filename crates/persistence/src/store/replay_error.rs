//! Errors of a log that is read again.

/// A record that contradicts those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// A stream that is not known, or known already.
    #[error("record of stream {0}, which does not follow from those before it")]
    Stream(u32),
    /// A message that does not follow the one before.
    #[error("message {sequence} of stream {stream} where {expected} is next")]
    Sequence {
        /// The stream.
        stream: u32,
        /// The message's sequence.
        sequence: u64,
        /// The sequence that would follow.
        expected: u64,
    },
}
