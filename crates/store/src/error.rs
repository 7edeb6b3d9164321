//! Errors of stores, and of publishers whose messages are kept.

use crate::name::NameError;
use crate::options::StoreOptions;
use lanecast_journal::{OpenError as JournalError, ReadError, StorageError};
use lanecast_persistence::{ReplayError, SendRefusal};
use lanecast_transport::ClaimError;
use lanecast_wire::store::{STORE_CONTROL_MAX, STORE_VERSION};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Failure to open a store's directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// A file operation failed.
    #[error("{}: {error}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The journal cannot be opened.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A record cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The journal has records, and the file that says whose they are is damaged.
    #[error(
        "{}: the file with the identity of the journal beside it is damaged: remove it, so that \
         the store draws a new one and copies from the others what it lacks, or move the directory \
         away, so that it begins empty", .0.display()
    )]
    Incarnation(PathBuf),
    /// Retention has removed the beginning of the journal, and no checkpoint can be used.
    #[error(
        "the records of the journal's beginning were removed, and no checkpoint of their state can \
         be used ({0}): restore the directory from a copy, or move it away, so that the store \
         begins empty and copies from the others"
    )]
    Checkpoint(String),
    /// A record of the journal is none of a store, or contradicts those before it.
    #[error("record {position} of the journal: {error}")]
    Record {
        /// Sequence of the record in the journal.
        position: u64,
        /// The contradiction.
        error: RecordError,
    },
}

/// A defect of a journal's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Not a store's, or of another version.
    #[error("no record of a store of this version")]
    Unknown,
    /// Durable, and not found again.
    #[error("it was durable, and is not there any more")]
    Missing,
    /// A contradiction to those before it.
    #[error(transparent)]
    Contradiction(#[from] ReplayError),
}

/// A transport that cannot carry the frames of publishers, subscribers and stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the transport carries messages of up to {longest} bytes, and frames to and from stores have \
     up to {STORE_CONTROL_MAX}: configure a larger net.longest_message, or a larger net.window or \
     shm.window, of which the longest message is an eighth"
)]
pub struct FrameLengthError {
    /// The longest message of the transport, in bytes.
    pub longest: usize,
}

impl FrameLengthError {
    /// Checks the longest message of a transport.
    pub(crate) const fn check(longest: usize) -> Result<(), Self> {
        if longest < STORE_CONTROL_MAX { Err(Self { longest }) } else { Ok(()) }
    }
}

/// Failure of a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError<E> {
    /// A name cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The commit delay is too long.
    #[error(
        "a commit delay of {0:?}: {longest:?} is the longest",
        longest = StoreOptions::COMMIT_DELAY_MAX
    )]
    CommitDelay(Duration),
    /// The transport cannot carry the store's frames.
    #[error(transparent)]
    FrameLength(#[from] FrameLengthError),
    /// The directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The transport refused.
    #[error(transparent)]
    Transport(E),
    /// The system has no descriptor.
    #[error("waiting for messages: {0}")]
    Wakeup(io::Error),
    /// The disk has failed: nothing is kept any more.
    #[error("the disk has failed: {0}; repair it and start the store again")]
    Disk(StorageError),
    /// Messages on disk cannot be read.
    #[error("reading kept messages: {0}")]
    Read(ReadError),
}

/// Failure to open a publisher whose messages are kept, or a subscriber that gets what it missed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError<E> {
    /// A name cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The transport cannot carry frames to stores.
    #[error(transparent)]
    FrameLength(#[from] FrameLengthError),
    /// The transport refused.
    #[error(transparent)]
    Transport(E),
    /// The system has no descriptor, or no random number.
    #[error("opening: {0}")]
    System(io::Error),
}

/// Reasons why a store has given an administrator no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoAnswer {
    /// No answer came in time.
    #[error("did not answer in time")]
    TimedOut,
    /// The store speaks another version of the protocol.
    #[error(
        "speaks version {0} of the stores' protocol, this program version {own}: give both the \
         same version of lanecast",
        own = STORE_VERSION
    )]
    OtherVersion(
        /// The store's version.
        u8,
    ),
}

/// Reasons why a message cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PersistentSendError {
    /// The stores do not accept it now, or never.
    #[error(transparent)]
    Refused(#[from] SendRefusal),
    /// The transport does not take it.
    #[error(transparent)]
    Transport(#[from] ClaimError),
}

impl PersistentSendError {
    /// Whether the same message may be accepted later.
    #[must_use]
    pub const fn may_pass(self) -> bool {
        matches!(
            self,
            Self::Refused(
                SendRefusal::NotRegistered | SendRefusal::FlightFull | SendRefusal::NotConsumed
            ) | Self::Transport(ClaimError::BackPressured(_))
        )
    }
}
