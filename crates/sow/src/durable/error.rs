//! Why topics cannot be kept, or brought back.

use crate::error::TopicError;
use lanecast_journal::{AppendError, OpenError, ReadError, StorageError, WaitError};
use std::fmt::{self, Display, Formatter};
use thiserror::Error;

/// Why a change was not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// The topic does not take the message.
    #[error(transparent)]
    Refused(#[from] TopicError),
    /// The journal does not take it.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// Why an archive cannot be opened, or a checkpoint not be taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SowStoreError {
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
    /// Topics or views on disk are not those of the settings.
    #[error("{}", describe(.0))]
    SchemaMismatch(Vec<SchemaMismatch>),
    /// Definitions cannot be written.
    #[error("the definitions of topics cannot be written: {0}")]
    Append(AppendError),
    /// Two topics have one number.
    #[error("the topics {0} and {1} cannot be in one archive: rename one")]
    SameNumber(String, String),
    /// A topic cannot be made.
    #[error(transparent)]
    Topic(#[from] TopicError),
}

/// A topic or a view on disk that is not that of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaMismatch {
    /// Whether it is a view.
    pub is_view: bool,
    /// Its name, or `#` and its number if that alone is known.
    pub name: Box<str>,
    /// How it differs.
    pub why: MismatchKind,
}

/// How a topic or a view on disk differs from the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MismatchKind {
    /// The settings do not have it, or not as one that is durable.
    Missing,
    /// Its definition is another one.
    Changed {
        /// The one on disk.
        was: String,
        /// The one in the settings.
        is: String,
    },
    /// A stored message does not fit the definition in the settings.
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

/// All of them, and the way out.
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
