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
    /// The process ended, or its connection broke.
    Crashed,
    /// Silent for too long.
    Silent,
    /// Without an answer during a change of the view.
    Unresponsive,
    /// A later incarnation of the same name is there.
    Replaced,
}

impl Departure {
    /// The reason with this number on the wire.
    pub(crate) const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Left,
            2 => Self::Crashed,
            3 => Self::Silent,
            4 => Self::Unresponsive,
            5 => Self::Replaced,
            _ => return None,
        })
    }

    /// The number on the wire.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Left => 1,
            Self::Crashed => 2,
            Self::Silent => 3,
            Self::Unresponsive => 4,
            Self::Replaced => 5,
        }
    }
}

/// The way a view came about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewChange {
    /// New members, by rank.
    pub joined: Vec<MemberInfo>,
    /// Former members, and why they are gone.
    pub left: Vec<(MemberInfo, Departure)>,
    /// Whether views of several members were merged, as after a partition.
    pub merged: bool,
}

impl ViewChange {
    /// The change from the view that the application knows, if it knows one. `why` tells why a
    /// former member is gone.
    pub(crate) fn between(
        old: Option<&View>,
        new: &View,
        merged: bool,
        mut why: impl FnMut(MemberId) -> Departure,
    ) -> Self {
        let is_new = |member: &&MemberInfo| !old.is_some_and(|old| old.contains(member.id));
        let joined = new.members.iter().filter(is_new).cloned().collect();
        let former = old.iter().flat_map(|old| &old.members);
        let gone = former.filter(|member| !new.contains(member.id));
        let left = gone.map(|member| (member.clone(), why(member.id))).collect();
        Self { joined, left, merged }
    }
}

/// An event of a group.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A new view is installed.
    View(&'a View, &'a ViewChange),
    /// A message to all.
    Message {
        /// The sender.
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
        /// The sender.
        from: MemberId,
        /// The message.
        bytes: &'a [u8],
    },
    /// A member is believed to be gone; the next view tells. Told once, with the first reason that
    /// is known, unless the member has shown itself since.
    Suspected(&'a MemberInfo, Departure),
    /// This member's application is asked for the state for a new member. It answers with the
    /// state as of the last event that it was given before the answer, which may be a later one
    /// than this. A request ends with its view: an answer after that is refused, and harmless.
    StateRequested {
        /// The new member.
        to: MemberId,
        /// Names the request.
        token: u64,
    },
    /// The group's state; exactly the messages of this view that it does not contain follow.
    State(&'a [u8]),
    /// The members that had the group's state are gone, or did not give it: it was too long, or
    /// their applications did not answer for half a minute each. This member begins it anew, as
    /// its application has it now, and gives it to others that ask.
    StateLost,
    /// Sending is possible again after a refusal.
    Writable,
    /// A member speaks another version of the protocol; it is left alone. Told once for each
    /// version.
    OtherVersion {
        /// The version it speaks.
        version: u8,
    },
    /// This member has left the group; nothing follows.
    Left,
}
