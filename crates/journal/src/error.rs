//! Errors of the journal, by operation.

use crate::storage::StorageError;
use core::fmt;
use lanecast_wire::journal::SegmentError;

/// Kind of damage at the position of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CorruptionKind {
    /// Only zeros.
    #[error("there is no record")]
    NoRecord,
    /// The header does not match its checksum or is invalid.
    #[error("the record's header does not match its checksum")]
    Header,
    /// The body does not match its checksum.
    #[error("the record's body does not match its checksum")]
    Body,
    /// A valid record with another sequence than expected.
    #[error("found record {found} instead of record {expected}")]
    OutOfSequence {
        /// Expected sequence.
        expected: u64,
        /// Sequence found.
        found: u64,
    },
    /// The record does not carry the checksum of the record before it, or is older.
    #[error("the record does not continue the previous one")]
    BrokenChain,
}

/// A durable record is missing or damaged. A crash alone never causes this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// The segment's number.
    pub segment: u64,
    /// The file.
    pub path: String,
    /// Offset of the damage in the file.
    pub offset: u64,
    /// Sequence of the missing record, if known.
    pub sequence: Option<u64>,
    /// Kind of damage.
    pub kind: CorruptionKind,
    /// The journal's directory.
    pub directory: String,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, offset, sequence, kind, directory, .. } = self;
        write!(f, "{path} is corrupt at offset {offset}: {kind}")?;
        if let Some(sequence) = sequence {
            write!(f, ", and record {sequence} was durable there")?;
        }
        write!(
            f,
            "; restore the file from a copy, or see what cutting the journal there would lose: \
             `lanecast journal repair {directory}`"
        )
    }
}

impl std::error::Error for Corruption {}

/// Failure to open a journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A file operation failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Both headers of a segment are invalid, or its length is wrong.
    #[error("{path}: {reason}; restore the file from a copy, or see `lanecast journal repair`")]
    InvalidSegment {
        /// The segment's number.
        segment: u64,
        /// The file.
        path: String,
        /// The defect.
        reason: SegmentError,
    },
    /// A segment is missing between others.
    #[error(
        "{path} is missing, but later segments exist: restore it from a copy, or see \
         `lanecast journal repair`"
    )]
    MissingSegment {
        /// The segment's number.
        segment: u64,
        /// The missing file.
        path: String,
    },
    /// A segment belongs to another journal.
    #[error("{path} belongs to another journal than the segments before it: remove it from here")]
    ForeignSegment {
        /// The segment's number.
        segment: u64,
        /// The file.
        path: String,
    },
    /// Durable records are damaged.
    #[error(transparent)]
    Corrupt(#[from] Corruption),
    /// There is no journal.
    #[error("there is no journal in {directory}: no file there is a segment")]
    NoJournal {
        /// The directory.
        directory: String,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread: {reason}")]
    Thread {
        /// The system's error message.
        reason: String,
    },
    /// A value of the configuration is out of range.
    #[error("{0}")]
    Config(&'static str),
}

/// Refusal of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Too many bytes wait to be written: retry later.
    #[error("too many bytes wait to be written: append again later")]
    Full,
    /// The disk is full: retry when there is space.
    #[error("the disk is full: append again when there is space")]
    NoSpace,
    /// A body does not fit into a segment.
    #[error("a body is longer than a segment holds: cut it, or configure larger segments")]
    TooLong,
    /// The disk has failed: the journal accepts nothing any more. See `Journal::failure`.
    #[error("the disk has failed: open the journal again when it is repaired")]
    Failed,
}

impl AppendError {
    /// Whether appending the same later may succeed.
    pub const fn is_back_pressure(self) -> bool {
        matches!(self, Self::Full | Self::NoSpace)
    }
}

/// Failure to wait for durability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The timeout has passed; the records may still become persisted.
    #[error("timed out")]
    TimedOut,
    /// The timeout has passed because the disk is full; the records are written when there is
    /// space.
    #[error("the disk is full: they are kept in memory until there is space")]
    NoSpace,
    /// The disk has failed: only reopening the journal shows whether the records are there. See
    /// `Journal::failure`.
    #[error("the disk has failed: open the journal again to see which records are there")]
    Failed,
    /// No record with this sequence was appended.
    #[error("no such record was appended")]
    UnknownSequence,
}

/// Failure of `Journal::persist`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PersistError {
    /// The records were not accepted.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The records were accepted but are not known to be persisted.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

/// Failure of a cursor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A segment cannot be opened or read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Retention has removed the record.
    #[error("record {requested} was removed: the oldest is {oldest}")]
    Removed {
        /// Requested sequence.
        requested: u64,
        /// Oldest available sequence.
        oldest: u64,
    },
    /// The requested record lies behind the next one to be appended.
    #[error("record {requested} does not exist yet: the next one is {next}")]
    Ahead {
        /// Requested sequence.
        requested: u64,
        /// Next sequence to be appended.
        next: u64,
    },
}

impl ReadError {
    /// Whether the same records may be read later: no file descriptor was free.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::Open(OpenError::Storage(error)) if error.may_pass())
    }
}

impl From<StorageError> for ReadError {
    fn from(error: StorageError) -> Self {
        Self::Open(error.into())
    }
}

impl From<Corruption> for ReadError {
    fn from(error: Corruption) -> Self {
        Self::Open(error.into())
    }
}
