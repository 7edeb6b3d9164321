//! Why an end of the transport cannot be made. Each says what to do.

use lanecast_os::{DirectoryError, FileError};
use lanecast_wire::shm::{HeaderError, SUBSCRIBERS_MAX, TOPICS_MAX, WINDOW_MAX, WINDOW_MIN};
use std::io;
use std::path::PathBuf;

/// Why a domain, publisher or subscriber cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The domain's directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The session's files cannot be made.
    #[error(transparent)]
    File(#[from] FileError),
    /// A window too small or too large.
    #[error("a window of {0} bytes: choose {WINDOW_MIN} to {WINDOW_MAX}")]
    Window(u64),
    /// A number of subscribers too small or too large.
    #[error("{0} subscribers: choose 1 to {SUBSCRIBERS_MAX}")]
    Subscribers(u32),
    /// A number of topics too small or too large.
    #[error("{0} topics: choose 1 to {TOPICS_MAX}")]
    Topics(u32),
    /// A topic that cannot be.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// A subscriber to nothing.
    #[error("a subscriber needs at least one topic")]
    NoTopics,
    /// The system refuses.
    #[error("cannot {act}: {error}")]
    System {
        /// What was tried.
        act: &'static str,
        /// The system's words.
        error: io::Error,
    },
}

/// Why a session cannot have a topic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopicError {
    /// Empty, or longer than 252 bytes.
    #[error("a topic's name has 1 to 252 bytes, this one has {0}")]
    Name(usize),
    /// The table is full.
    #[error("the session has {0} topics already: configure a larger shm.topics_max")]
    Full(u32),
}

/// Why a session of somebody else cannot be joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// Its files are not what they should be.
    #[error("{path}: {error}")]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: HeaderError,
    },
    /// All its places are taken.
    #[error(
        "{path}: all {places} places for subscribers are taken (`lanecast ls` shows by whom; \
         the publisher's shm.subscribers_max sets how many there are)"
    )]
    NoPlace {
        /// The file.
        path: PathBuf,
        /// How many there are.
        places: u32,
    },
    /// The system refuses.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
}

impl AttachError {
    /// Whether the session was simply gone by the time it was looked at.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}
