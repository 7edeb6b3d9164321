//! Why topics cannot be kept, or brought back.

use crate::refusal::Refusal;
use lanecast_journal::{AppendError, OpenError, ReadError, StorageError, WaitError};
use thiserror::Error;

/// Why a change was not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// The topic does not take the message.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The journal does not take it.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// Why an archive cannot be opened, or a checkpoint not be taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The journal cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The journal cannot be read behind the checkpoint.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The disk refuses.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The journal does not become durable.
    #[error("the journal does not become durable: {0}")]
    Wait(WaitError),
    /// A checkpoint is damaged.
    #[error("{path} is damaged at byte {offset}: restore it from a copy")]
    Damaged {
        /// The file.
        path: String,
        /// Where the damaged block starts.
        offset: u64,
    },
    /// Another version wrote the checkpoint.
    #[error("{path} has layout version {found}, which this program does not read")]
    Version {
        /// The file.
        path: String,
        /// The version there.
        found: u32,
    },
    /// A journal record is no entry.
    #[error(
        "record {0} of the journal is not about a topic: give the archive a directory of its own"
    )]
    Foreign(u64),
    /// A kept message does not fit its topic.
    #[error("a kept message of topic {topic} is not taken: {refusal}; has its definition changed?")]
    Refused {
        /// The topic.
        topic: String,
        /// Why.
        refusal: Refusal,
    },
    /// Two topics have one number.
    #[error("the topics {0} and {1} cannot be in one archive: rename one")]
    SameNumber(String, String),
    /// A topic cannot be made.
    #[error(transparent)]
    Topic(#[from] Refusal),
}

impl From<WaitError> for ArchiveError {
    fn from(error: WaitError) -> Self {
        Self::Wait(error)
    }
}
