//! Heartbeats, and the frames of a change of the view.
#![allow(missing_debug_implementations, reason = "types that zerocopy derives within the macro")]

use super::GROUP_NAME_MAX;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

macro_rules! layout {
    ($(#[$about:meta])* $name:ident [$size:literal] {
        $($(#[$what:meta])* $field:ident: $type:ty,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[$what])* pub $field: $type,)* }
        const _: () = assert!(size_of::<$name>() == $size);
    };
}

layout! {
    /// A view's identity.
    ViewEntry [16] {
        /// Epoch.
        epoch: U64,
        /// The coordinator's id.
        coordinator: U64,
    }
}

layout! {
    /// Identity of a round. Later rounds have larger ones: by `round`, then by `leader`.
    BallotEntry [16] {
        /// Number of the round.
        round: U64,
        /// The leader's id.
        leader: U64,
    }
}

layout! {
    /// In a Heartbeat; the vector and the name follow.
    HeartbeatBody [24] {
        /// The coordinator of the sender's view.
        coordinator: U64,
        /// Start of this incarnation, in microseconds since 1970.
        incarnation: U64,
        /// Entries of the vector: the next sequence expected of each member, by rank.
        count: U16,
        /// TCP port at which other members watch that the sender lives; 0: none.
        port: U16,
        /// A [`MemberState`].
        state: u8,
        /// Bytes of the name.
        name: u8,
        /// Zero.
        reserved: U16,
    }
}

/// State of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MemberState {
    /// Looks for others; its view is its own.
    Seeking = 0,
    /// In a view.
    Member = 1,
    /// In a round.
    Changing = 2,
    /// Leaves.
    Leaving = 3,
}

impl MemberState {
    /// The state with this number.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Seeking,
            1 => Self::Member,
            2 => Self::Changing,
            3 => Self::Leaving,
            _ => return None,
        })
    }
}

layout! {
    /// In a Suspect.
    SuspectBody [9] {
        /// The suspected member.
        member: U64,
        /// The reason: 1 left, 2 crashed, 3 silent, 4 unresponsive, 5 replaced.
        reason: u8,
    }
}

layout! {
    /// In a Prepare; the participants follow.
    PrepareBody [32] {
        /// The round.
        ballot: BallotEntry,
        /// The epoch of the next view.
        epoch: U64,
        /// Participants.
        count: U16,
        /// Zero.
        reserved: [u8; 6],
    }
}

layout! {
    /// A participant of a round.
    ParticipantEntry [32] {
        /// The member.
        id: U64,
        /// The view, as far as the leader knows.
        view: ViewEntry,
        /// 1: it leaves, and is not in the next view.
        leaving: u8,
        /// Zero.
        reserved: [u8; 7],
    }
}

layout! {
    /// In a Flushed; the vector follows, then the ids of the members of the ready view.
    FlushedBody [72] {
        /// The round.
        ballot: BallotEntry,
        /// The installed view.
        view: ViewEntry,
        /// The view that the member was ready for without installing it; epoch 0: none.
        ready: ViewEntry,
        /// The round of that view.
        ready_ballot: BallotEntry,
        /// Entries of the vector: the next sequence expected of each member of the installed view,
        /// by rank; at the sender's own rank the next one it will send.
        count: U16,
        /// Members of the ready view.
        ready_members: U16,
        /// The sender's own rank in the installed view.
        rank: U32,
    }
}

layout! {
    /// In a Cut; the members of the next view follow, then the old views with their targets.
    CutBody [40] {
        /// The round.
        ballot: BallotEntry,
        /// The next view.
        view: ViewEntry,
        /// Members of the next view.
        members: U16,
        /// Old views.
        views: U16,
        /// Zero.
        reserved: U32,
    }
}

layout! {
    /// A member of the next view; its name follows.
    MemberEntry [32] {
        /// The member.
        id: U64,
        /// Start of this incarnation, in microseconds since 1970.
        incarnation: U64,
        /// The first sequence in the view.
        first: U64,
        /// TCP port at which other members watch that it lives; 0: none.
        port: U16,
        /// Index of its old view among those of the Cut.
        old_view: U16,
        /// Bytes of its name.
        name: u8,
        /// Zero.
        reserved: [u8; 3],
    }
}

layout! {
    /// An old view; the targets of its members follow, by rank.
    OldViewEntry [24] {
        /// The view.
        view: ViewEntry,
        /// Members.
        count: U16,
        /// Zero.
        reserved: [u8; 6],
    }
}

layout! {
    /// The end of a member's stream in an old view.
    TargetEntry [16] {
        /// The first sequence that is not of the view.
        end: U64,
        /// A participant that holds everything before it.
        holder: U64,
    }
}

layout! {
    /// In an Install: the view of a Cut that its receiver is ready for.
    InstallBody [32] {
        /// The round of that Cut.
        ballot: BallotEntry,
        /// The view.
        view: ViewEntry,
    }
}

layout! {
    /// In a Refuse.
    RefuseBody [40] {
        /// The round that is refused.
        ballot: BallotEntry,
        /// The latest round that was promised.
        promised: BallotEntry,
        /// The highest epoch that the member has been ready for.
        epoch: U64,
    }
}

/// A member of the next view, as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextMember<'a> {
    /// The member.
    pub id: u64,
    /// Start of this incarnation, in microseconds since 1970.
    pub incarnation: u64,
    /// The first sequence in the view.
    pub first: u64,
    /// TCP port at which other members watch that it lives; 0: none.
    pub port: u16,
    /// Index of its old view among those of the Cut.
    pub old_view: u16,
    /// The name.
    pub name: &'a str,
}

/// An old view, as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldView<'a> {
    /// The view.
    pub view: ViewEntry,
    /// The end of each member's stream, by rank.
    pub targets: &'a [TargetEntry],
}

pub(super) fn name(bytes: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(bytes).ok()?;
    (name.len() <= GROUP_NAME_MAX).then_some(name)
}
