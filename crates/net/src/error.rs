//! Errors of opening a network, a publisher, a subscriber or a topic.

use lanecast_os::interface::InterfaceError;
use lanecast_protocol::sender::StageError;
use lanecast_sealing::KeyFileError;
use lanecast_tls::TlsError;
use lanecast_transport::{BackPressureReason, ClaimError};
use std::io;
use std::net::SocketAddr;

/// Error of opening a network, publisher or subscriber.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// An invalid setting.
    #[error("{what}: {fix}")]
    Setting {
        /// The setting.
        what: &'static str,
        /// A valid value.
        fix: &'static str,
    },
    /// The interface does not exist.
    #[error("net.interface: {0}")]
    Interface(InterfaceError),
    /// The file of keys cannot be used.
    #[error("net.key_file {0}")]
    KeyFile(KeyFileError),
    /// A file of certificates or keys cannot be used for TLS.
    #[error("net.tls: {0}")]
    Tls(TlsError),
    /// A system call failed.
    #[error("cannot {doing}: {error}")]
    System {
        /// The attempted action.
        doing: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The topic cannot be added.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// A subscriber without topics.
    #[error("a subscriber needs at least one topic")]
    NoTopics,
}

impl From<InterfaceError> for OpenError {
    fn from(error: InterfaceError) -> Self {
        Self::Interface(error)
    }
}

/// Error of adding a topic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopicError {
    /// The name is empty or too long.
    #[error("a topic's name has 1 to 255 bytes, not {0}")]
    Name(usize),
    /// The session has reached `net.topics_max`.
    #[error(
        "the session has {0} topics already: set net.topics_max higher, or open another publisher"
    )]
    Full(usize),
    /// The topic has a multicast group of its own, and the session sends to another.
    #[error(
        "the topic has the group {own} by net.groups, and its publisher sends to {group}: open \
         another publisher for it, or give it no group of its own"
    )]
    Group {
        /// The topic's group.
        own: SocketAddr,
        /// The session's group.
        group: SocketAddr,
    },
}

/// Adds the attempted action to a system error.
pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> OpenError {
    move |error| OpenError::System { doing, error }
}

/// Checks a topic's name.
pub(crate) fn check_name(name: &str) -> Result<(), TopicError> {
    if name.is_empty() || name.len() > lanecast_wire::net::NAME_MAX {
        return Err(TopicError::Name(name.len()));
    }
    Ok(())
}

/// The contract's error for a message that the protocol refused.
pub(crate) const fn claim_error(refused: StageError) -> ClaimError {
    match refused {
        StageError::WindowFull => ClaimError::BackPressured(BackPressureReason::WindowFull),
        StageError::TooLong { longest } => ClaimError::TooLong { longest },
        StageError::NoSuchTopic => ClaimError::NoSuchTopic,
        StageError::Closed => ClaimError::Closed,
    }
}
