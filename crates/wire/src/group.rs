//! Frames of groups: what the members of a group send each other over any transport. See
//! `docs/protocol/group.md`.
//!
//! - [`GroupHeader`], [`head`]: the beginning of every frame
//! - [`GroupFrame`]: a frame, read and checked
//! - [`delivery`]: messages, acknowledgements, repairs
//! - [`views`]: heartbeats and changes of the view
//! - [`watch`]: bytes of the connections by which members watch each other

pub mod delivery;
mod frame;
mod lists;
#[cfg(test)]
mod page;
#[cfg(test)]
mod tests;
pub mod views;
pub mod watch;

pub use delivery::{DataFlags, OrderRun, order_runs};
pub use frame::{GroupFrame, GroupFrameError};

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// The version of the frames.
pub const GROUP_VERSION: u8 = 1;
/// Bytes of a frame's header.
pub const GROUP_HEADER: usize = size_of::<GroupHeader>();
/// The most members of a view.
pub const GROUP_MEMBERS_MAX: usize = 1_024;
/// The longest name of a member, in bytes.
pub const GROUP_NAME_MAX: usize = 64;
/// Flag of a [`Leave`](GroupKind::Leave): all other members of the view leave too, or have left.
pub const ALL_LEAVE: u16 = 1;
/// Flag of a [`Want`](GroupKind::Want) and of a [`Repair`](GroupKind::Repair): sent to all, since
/// the way to the one member that it is for stays closed.
pub const TO_ALL: u16 = 1;
/// Largest epoch of a view and number of a round in a valid frame: counting on cannot wrap.
pub const GROUP_NUMBER_MAX: u64 = 1 << 62;

/// Header of every frame.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct GroupHeader {
    /// [`GROUP_VERSION`].
    pub version: u8,
    /// A [`GroupKind`].
    pub kind: u8,
    /// [`DataFlags`] of a part of a stream, [`ALL_LEAVE`], or [`TO_ALL`]; else zero.
    pub flags: U16,
    /// Hash of the group's name.
    pub group: U32,
    /// The member that sends the frame.
    pub sender: U64,
    /// The epoch of the sender's view; 0: it has none.
    pub epoch: U64,
}

const _: () = assert!(GROUP_HEADER == 24);

/// Kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum GroupKind {
    /// Says that a member lives, which view it has and how far it got.
    Heartbeat = 1,
    /// A part of the sender's stream: a message or a fragment, or an order list.
    Data = 2,
    /// Positions up to which the sender has received each member's stream.
    Ack = 3,
    /// Asks for parts of a stream.
    Want = 4,
    /// A part of a stream, sent again by its sender or by another.
    Repair = 5,
    /// A member is suspected.
    Suspect = 6,
    /// The sender leaves the group.
    Leave = 7,
    /// Begins a round.
    Prepare = 8,
    /// Answers Prepare.
    Flushed = 9,
    /// The ends of the streams of the old views, and the next view.
    Cut = 10,
    /// Everything up to the cut is here.
    Ready = 11,
    /// The next view begins.
    Install = 12,
    /// A round comes too late.
    Refuse = 13,
    /// A message to one member, or a fragment of one.
    Direct = 14,
    /// The position up to which the sender has received messages to it alone.
    DirectAck = 15,
    /// A part of the group's state.
    State = 16,
    /// Bytes of the state that the sender has.
    StateAck = 17,
}

impl GroupKind {
    const ALL: [Self; 17] = [
        Self::Heartbeat,
        Self::Data,
        Self::Ack,
        Self::Want,
        Self::Repair,
        Self::Suspect,
        Self::Leave,
        Self::Prepare,
        Self::Flushed,
        Self::Cut,
        Self::Ready,
        Self::Install,
        Self::Refuse,
        Self::Direct,
        Self::DirectAck,
        Self::State,
        Self::StateAck,
    ];

    /// The kind with this number.
    #[inline]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        if byte == 0 || byte as usize > Self::ALL.len() {
            None
        } else {
            Some(Self::ALL[byte as usize - 1])
        }
    }
}

/// Fields of a header that its writer chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind of the frame.
    pub kind: GroupKind,
    /// Flags, or 0.
    pub flags: u16,
    /// Hash of the group's name.
    pub group: u32,
    /// The member that sends the frame.
    pub sender: u64,
    /// The epoch of its view, or 0.
    pub epoch: u64,
}

impl Header {
    pub(crate) fn layout(self) -> GroupHeader {
        GroupHeader {
            version: GROUP_VERSION,
            kind: self.kind as u8,
            flags: self.flags.into(),
            group: self.group.into(),
            sender: self.sender.into(),
            epoch: self.epoch.into(),
        }
    }
}

/// The header and fixed fields of a frame, each given as its value and its bytes, without an
/// allocation.
///
/// # Panics
/// If `N` is not the sum of the header's bytes and those of the fields.
#[inline]
pub fn head<const N: usize>(header: Header, fields: &[(u64, usize)]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..GROUP_HEADER].copy_from_slice(header.layout().as_bytes());
    let mut at = GROUP_HEADER;
    for &(value, length) in fields {
        bytes[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
        at += length;
    }
    assert!(at == N, "the fields fill the head");
    bytes
}

/// Hash of a group's name, which keeps frames of different groups apart: FNV-1a of 32 bits. It is
/// no protection against attackers.
pub fn group_hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
