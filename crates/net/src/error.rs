//! Why an end cannot be made.

use lanecast_os::interface::InterfaceError;
use std::io;
use std::net::SocketAddr;

/// Why a network, publisher or subscriber cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A setting that cannot be.
    #[error("{what}: {fix}")]
    Setting {
        /// The setting.
        what: &'static str,
        /// What to write instead.
        fix: &'static str,
    },
    /// No such interface.
    #[error("net.interface: {0}")]
    Interface(InterfaceError),
    /// The system refuses something.
    #[error("cannot {doing}: {error}")]
    System {
        /// What was to be done.
        doing: &'static str,
        /// The system's words.
        error: io::Error,
    },
    /// A topic's name.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// A subscriber to nothing.
    #[error("a subscriber needs at least one topic")]
    NoTopics,
}

impl From<InterfaceError> for OpenError {
    fn from(error: InterfaceError) -> Self {
        Self::Interface(error)
    }
}

/// Why a topic cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopicError {
    /// Empty or too long.
    #[error("a topic's name has 1 to 255 bytes, not {0}")]
    Name(usize),
    /// As many topics as may be.
    #[error(
        "the session has {0} topics already: set net.topics_max higher, or open another publisher"
    )]
    Full(usize),
    /// One that has a group of its own, in a session that sends to another one.
    #[error(
        "the topic has the group {own} by net.groups, and its publisher sends to {group}: open \
         another publisher for it, or give it no group of its own"
    )]
    Group {
        /// The topic's.
        own: SocketAddr,
        /// The publisher's.
        group: SocketAddr,
    },
}

/// Gives a system's error its place.
pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> OpenError {
    move |error| OpenError::System { doing, error }
}

/// Whether `name` can be a topic.
pub(crate) fn check_name(name: &str) -> Result<(), TopicError> {
    if name.is_empty() || name.len() > lanecast_wire::net::NAME_MAX {
        return Err(TopicError::Name(name.len()));
    }
    Ok(())
}
