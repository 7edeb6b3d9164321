//! Errors of contexts, publishers and subscribers.

use crate::config::ConfigError;
use lanecast_content::OpenError;
use std::io;

/// Errors of making a context, publisher or subscriber.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The transport over shared memory cannot be set up.
    #[error(transparent)]
    Shm(#[from] lanecast_shm::OpenError),
    /// The transports between hosts cannot be set up.
    #[error(transparent)]
    Net(#[from] lanecast_net::OpenError),
    /// The filter of a subscriber cannot be used.
    #[error("{0}")]
    Filter(String),
    /// A pattern of topics cannot be used.
    #[error("{0}")]
    Pattern(String),
    /// A group, a member, a store, or a topic whose messages are kept, cannot have this name.
    #[error("{0}")]
    Name(String),
    /// A group cannot be joined with these settings.
    #[error("{0}")]
    Group(String),
    /// A store, or a topic whose messages are kept, cannot be opened.
    #[error("{0}")]
    Persistence(String),
    /// The network allows fewer topics than shared memory.
    #[error(
        "net.topics_max is {net}, and shm.topics_max {shm}: a publisher over both has the same \
         topics in both, so set net.topics_max to {shm} or more"
    )]
    Topics {
        /// `net.topics_max`.
        net: usize,
        /// `shm.topics_max`.
        shm: u32,
    },
    /// The kernel does not reveal the boot id or the directory's identity.
    #[error("cannot identify this host and directory (is /proc mounted?): {0}")]
    Locality(io::Error),
}

impl From<OpenError<Self>> for Error {
    fn from(error: OpenError<Self>) -> Self {
        match error {
            OpenError::Transport(error) => error,
            other => Self::Filter(other.to_string()),
        }
    }
}

/// Errors of adding a topic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopicError {
    /// In shared memory.
    #[error(transparent)]
    Shm(#[from] lanecast_shm::TopicError),
    /// On the network.
    #[error(transparent)]
    Net(#[from] lanecast_net::TopicError),
}
