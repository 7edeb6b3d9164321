//! What can go wrong, operation by operation.

use crate::storage::StorageError;
use core::fmt;
use lanecast_wire::journal::SegmentError;

/// What is wrong with bytes that should be a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CorruptionKind {
    /// There is nothing but zeros.
    #[error("there is no record")]
    NoRecord,
    /// The header does not match its checksum, or cannot be one.
    #[error("the record's header does not match its checksum")]
    Header,
    /// The body does not match its checksum.
    #[error("the record's body does not match its checksum")]
    Body,
    /// It is a record, and not the one that belongs here.
    #[error("record {found} is in the place of record {expected}")]
    OutOfSequence {
        /// The sequence that belongs here.
        expected: u64,
        /// The sequence that is here.
        found: u64,
    },
    /// It follows another record than the one before.
    #[error("the record does not continue the one before it")]
    BrokenChain,
}

/// Damage that no crash leaves: records that were durable are not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// The segment's number.
    pub segment: u64,
    /// The file.
    pub path: String,
    /// Where in it the damage begins.
    pub offset: u64,
    /// The record that should be there, if that is known.
    pub sequence: Option<u64>,
    /// What is there instead.
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

/// Why a journal cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The disk refuses.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A segment's header is not one.
    #[error("{path}: {reason}; restore the file from a copy, or see `lanecast journal repair`")]
    InvalidSegment {
        /// The segment's number.
        segment: u64,
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: SegmentError,
    },
    /// A segment is missing among the others.
    #[error(
        "{path} is missing, and segments behind it are there: restore it from a copy, or see \
         `lanecast journal repair`"
    )]
    MissingSegment {
        /// The segment's number.
        segment: u64,
        /// The file that is missing.
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
        /// The system's words.
        reason: String,
    },
    /// A setting cannot be.
    #[error("{0}")]
    Config(&'static str),
}

/// Why records are not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// Too much waits to be written: append again later.
    #[error("too much waits to be written: append cached later")]
    Full,
    /// The disk is full: append again when there is space.
    #[error("the disk is full: append cached when there is space")]
    NoSpace,
    /// A body is longer than the journal's segments hold.
    #[error("a body is longer than a segment pins: cut it, or configure larger segments")]
    TooLong,
    /// The disk has failed: this journal accepts nothing any more. See `Journal::failure`.
    #[error("the disk has failed: open the journal cached when it is repaired")]
    Failed,
}

impl AppendError {
    /// Whether appending the same later may succeed.
    pub const fn is_back_pressure(self) -> bool {
        matches!(self, Self::Full | Self::NoSpace)
    }
}

/// Why records are not known to be persisted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The time is over; they may still be.
    #[error("the time is over")]
    TimedOut,
    /// The time is over, because the disk is full; they will be when there is space.
    #[error("the disk is full: they are kept in memory until there is space")]
    NoSpace,
    /// The disk has failed: nobody can tell. See `Journal::failure`.
    #[error("the disk has failed: only reading the journal cached can tell")]
    Failed,
    /// Nothing with this sequence was ever appended.
    #[error("no such record was appended")]
    UnknownSequence,
}

/// Why `Journal::persist` gives no sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PersistError {
    /// The records were not accepted.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// They were accepted, and are not known to be persisted.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

/// Why a cursor cannot read on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A segment cannot be opened or read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What was asked for was removed before.
    #[error("record {requested} is not kept any more: the oldest is {oldest}")]
    Removed {
        /// The sequence that was asked for.
        requested: u64,
        /// The oldest that there is.
        oldest: u64,
    },
    /// What was asked for is further ahead than the next record.
    #[error("record {requested} is not there yet, and the next one to come is {next}")]
    Ahead {
        /// The sequence that was asked for.
        requested: u64,
        /// The next one to come.
        next: u64,
    },
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
