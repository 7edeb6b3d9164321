//! Errors of the durable store.

use crate::error::TopicError;
use lanecast_journal::{AppendError, OpenError, ReadError, StorageError, WaitError};
use std::fmt::{self, Display, Formatter};
use thiserror::Error;

/// Refusal of a change.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// The topic refuses the message.
    #[error(transparent)]
    Refused(#[from] TopicError),
    /// The journal refuses the change.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// Failure to open a store or to take a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SowStoreError {
    /// The journal cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The journal cannot be read behind the checkpoint.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file operation failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The journal did not become durable in time.
    #[error("the journal does not become durable: {0}")]
    Wait(WaitError),
    /// A checkpoint is damaged.
    #[error("{path} is damaged at byte {offset}: restore it from a copy")]
    Damaged {
        /// The file.
        path: String,
        /// Offset of the damaged block.
        offset: u64,
    },
    /// The checkpoint has an unknown layout version.
    #[error("{path} has layout version {found}, which this program does not read")]
    Version {
        /// The file.
        path: String,
        /// Layout version of the file.
        found: u32,
    },
    /// A journal record is not an entry of a store.
    #[error(
        "record {0} of the journal is not an entry of a topic: give the topics a directory of \
         their own"
    )]
    Foreign(u64),
    /// Topics or views on disk do not match the configuration.
    #[error("{}", describe(.0))]
    SchemaMismatch(Vec<SchemaMismatch>),
    /// Definitions could not be appended.
    #[error("the definitions of topics cannot be written")]
    Append(#[from] AppendError),
    /// Two topics have the same number.
    #[error("the topics {0} and {1} cannot be in one archive: rename one")]
    SameNumber(String, String),
    /// A topic's definition is invalid.
    #[error("the topic {name}: {error}")]
    Topic {
        /// The name.
        name: Box<str>,
        /// The fault.
        error: TopicError,
    },
}

/// A topic or view on disk that does not match the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaMismatch {
    /// Whether it is a view.
    pub is_view: bool,
    /// Name, or `#` and the number if the name is unknown.
    pub name: Box<str>,
    /// Kind of the difference.
    pub why: MismatchKind,
}

/// Difference between disk and configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MismatchKind {
    /// Missing in the configuration, or not durable there.
    Missing,
    /// The definition has changed.
    Changed {
        /// Definition on disk.
        was: String,
        /// Definition in the configuration.
        is: String,
    },
    /// A stored message does not fit the configured definition.
    Refused(TopicError),
}

impl Display for SchemaMismatch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (kind, name) = (if self.is_view { "view" } else { "topic" }, &self.name);
        let one_line = |text: &str| text.replace('\n', ", ");
        match &self.why {
            MismatchKind::Missing if self.is_view => {
                write!(f, "the view {name} is on disk, and not in the settings")
            }
            MismatchKind::Missing => {
                write!(f, "the topic {name} is on disk, and no durable topic of the settings")
            }
            MismatchKind::Changed { was, is } => {
                let (was, is) = (one_line(was), one_line(is));
                write!(f, "the {kind} {name} was ({was}) and would be ({is})")
            }
            MismatchKind::Refused(refusal) => {
                write!(f, "stored messages of the {kind} {name} do not fit the settings: {refusal}")
            }
        }
    }
}

/// Lists the mismatches and the remedy.
fn describe(mismatches: &[SchemaMismatch]) -> String {
    let all: Vec<_> = mismatches.iter().map(ToString::to_string).collect();
    let names: Vec<_> = mismatches.iter().map(|mismatch| format!("{:?}", mismatch.name)).collect();
    format!(
        "{}; nothing was changed: put the settings back as they were, or say by name what may be \
         dropped from disk, with all its records: storage.forget = [{}], or --forget NAME",
        all.join("; "),
        names.join(", ")
    )
}

impl From<WaitError> for SowStoreError {
    fn from(error: WaitError) -> Self {
        Self::Wait(error)
    }
}
