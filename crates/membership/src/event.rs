//! Events of a group.

use crate::view::{MemberId, MemberInfo, View};

/// The order that a message is delivered in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// The order of its sender.
    #[default]
    Sender,
    /// One order at all members, across senders.
    Total,
}

/// Why a member is no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Departure {
    /// Said by itself.
    Left,
    /// Its process ended, or its connection broke.
    Crashed,
    /// Silent for too long.
    Silent,
    /// Without an answer during a change of the view.
    Unresponsive,
    /// A later incarnation of the same name is there.
    Replaced,
}

/// How a view came about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewChange {
    /// New members, by rank.
    pub joined: Vec<MemberInfo>,
    /// Former members, and why they are gone.
    pub left: Vec<(MemberInfo, Departure)>,
    /// Whether views of several members were merged, as after a partition.
    pub merged: bool,
}

/// An event of a group.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A new view is installed.
    View(&'a View, &'a ViewChange),
    /// A message to all.
    Message {
        /// Its sender.
        from: MemberId,
        /// The sender's own count, from 0; fragments count.
        sequence: u64,
        /// The order that it was sent with.
        order: Order,
        /// The message.
        bytes: &'a [u8],
    },
    /// A message to this member alone.
    Direct {
        /// Its sender.
        from: MemberId,
        /// The message.
        bytes: &'a [u8],
    },
    /// A member is believed to be gone; the next view tells.
    Suspected(&'a MemberInfo, Departure),
    /// This member's application is asked for the state for a new member: it answers at once, with
    /// the state as of this moment.
    StateRequested {
        /// The new member.
        to: MemberId,
        /// Names the request.
        token: u64,
    },
    /// The group's state as of the beginning of this view; messages follow it.
    State(&'a [u8]),
    /// Sending is possible again after a refusal.
    Writable,
    /// A member speaks another version of the protocol; it is left alone.
    OtherVersion {
        /// The version it speaks.
        version: u8,
    },
    /// This member has left the group; nothing follows.
    Left,
}
