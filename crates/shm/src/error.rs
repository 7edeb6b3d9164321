//! Errors of opening a domain, a publisher or a subscriber, and of joining a session.

use lanecast_os::{DirectoryError, FileError};
use lanecast_wire::shm::{HeaderError, SUBSCRIBERS_MAX, TOPICS_MAX, WINDOW_MAX, WINDOW_MIN};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A domain, publisher or subscriber cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The domain's directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The session's files cannot be created.
    #[error(transparent)]
    File(#[from] FileError),
    /// The window is too small or too large.
    #[error("a window of {0} bytes: choose {WINDOW_MIN} to {WINDOW_MAX}")]
    Window(u64),
    /// The number of subscribers is too small or too large.
    #[error("{0} subscribers: choose 1 to {SUBSCRIBERS_MAX}")]
    Subscribers(u32),
    /// The number of topics is too small or too large.
    #[error("{0} topics: choose 1 to {TOPICS_MAX}")]
    Topics(u32),
    /// Subscribers would be evicted at their first pause.
    #[error("eviction after {0:?}: choose 1 ms or more")]
    SlowConsumer(Duration),
    /// The topic is invalid.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// The subscriber has no topics.
    #[error("a subscriber needs at least one topic")]
    NoTopics,
    /// A system call failed.
    #[error("cannot {act}: {error}")]
    System {
        /// The attempted action.
        act: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl OpenError {
    /// Wraps the system's error of a failed attempt to `act`.
    pub(crate) fn system(act: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::System { act, error }
    }
}

/// A topic cannot be added to a session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopicError {
    /// The name is empty or longer than 252 bytes.
    #[error("a topic's name has 1 to 252 bytes, this one has {0}")]
    Name(usize),
    /// The session's topic table is full.
    #[error(
        "the session has {0} topics already: open another publisher, or configure a larger \
         shm.topics_max (at most {TOPICS_MAX})"
    )]
    Full(u32),
}

/// A session cannot be joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// A file's header is damaged, or of another version.
    #[error("{path}: {error}")]
    Header {
        /// The file.
        path: PathBuf,
        /// The fault in the header.
        error: HeaderError,
    },
    /// All subscriber slots are taken.
    #[error(
        "{path}: all {slots} subscriber slots are taken (`lanecast ls` lists the subscribers; \
         the publisher's shm.subscribers_max sets the number of slots)"
    )]
    NoSlot {
        /// The file.
        path: PathBuf,
        /// Number of slots.
        slots: u32,
    },
    /// A system call failed.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl JoinError {
    /// Whether the session's files were removed in the meantime.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}
