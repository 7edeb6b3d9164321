//! Refusals.

use crate::view::MemberId;

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no view yet.
    #[error("the group has no view yet: wait for the first View event")]
    NoView,
    /// The view changes; sending goes on in the next one.
    #[error("the group's view is changing: try again after the next View event")]
    Changing,
    /// Members have not acknowledged enough yet; the slowest is named.
    #[error("no credit: member {0} has not acknowledged enough yet")]
    NoCredit(MemberId),
    /// The transport has no room.
    #[error("the transport has no room")]
    Transport,
    /// The message is too long.
    #[error("a message of {length} bytes is too long: the most is {most}")]
    TooLong {
        /// The length, in bytes.
        length: usize,
        /// The longest possible, in bytes.
        most: usize,
    },
    /// The receiver is not in the view.
    #[error("member {0} is not in the view")]
    NotAMember(MemberId),
    /// This member has left or is leaving.
    #[error("this member has left the group")]
    HasLeft,
}

/// Why a state was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// No such request is open.
    #[error("no request for a state has the token {0}, or its member is gone")]
    NotRequested(u64),
    /// Own messages wait to be delivered, which the state cannot contain.
    #[error("own messages wait to be delivered: poll first, and give the state after them")]
    Unseen,
    /// The state is too long. The request has ended: the new member asks another member, and goes
    /// on without a state if none gives one.
    #[error("a state of {length} bytes is too long: the most is {most}")]
    TooLong {
        /// The length, in bytes.
        length: usize,
        /// The longest possible, in bytes.
        most: usize,
    },
}

/// Settings that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub String);
