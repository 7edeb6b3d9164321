//! Frames between hosts: one a datagram, or one after the other in a stream. See
//! `docs/protocol/net.md`.
//!
//! ```text
//! FrameHeader   24 bytes, in every frame
//! then, by kind, DataHeader and blocks of items, or one of the bodies in `control`
//! ```
//!
//! Nothing here is trusted: readers give `None` for whatever is not well formed.

mod block;
mod control;
pub mod layout;
mod resolution;
mod sealed;
mod writer;

pub use block::{BlockHeader, Blocks, Item, ItemFlags, ItemHeader, Items, TOTAL_BYTES, item_bytes};
pub use control::{
    ChallengeBody, EchoBody, EjectBody, JoinBody, LeaveBody, NakBody, Names, ParityBody, Range,
    SessionBody, StatusBody, TopicEntry, TopicHead, Topics, WelcomeBody, list, names, topics,
};
pub use resolution::{
    AdvertEntry, Adverts, OpenEntry, address_bytes, advert_flag, adverts, query_flag, refusal_flag,
};
pub use sealed::{
    SEALED_COVERED_BYTES, SEALED_MAGIC, SEALED_OVERHEAD, SEALED_TAG_BYTES, SEALED_VERSION,
    SealedDestination, SealedHeader, is_sealed,
};
pub use writer::FrameWriter;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The first two bytes of every frame.
pub const MAGIC: u16 = u16::from_le_bytes(*b"LC");
/// The version of the frames.
pub const VERSION: u8 = 2;
/// The bytes of a data frame before its first block.
pub const DATA_OFFSET: usize = size_of::<FrameHeader>() + size_of::<DataHeader>();
/// The largest frame of a stream, in bytes.
pub const FRAME_MAX: usize = 65_528;
/// The smallest limit for datagrams that a session may have, in bytes.
pub const DATAGRAM_MIN: usize = 512;
/// The most data datagrams of a block that parity protects.
pub const FEC_DATA_MAX: usize = 32;
/// The most parity frames of a block.
pub const FEC_PARITY_MAX: usize = 32;
/// The longest datagram of a session with parity, in bytes: bounds what its receivers keep.
pub const FEC_DATAGRAM_MAX: usize = 9_216;
/// The bytes of a symbol before the blocks of its datagram: the number of their bytes.
pub const SYMBOL_LENGTH_BYTES: usize = 2;
/// The longest topic name, in bytes of UTF-8.
pub const NAME_MAX: usize = 255;

/// Type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Messages.
    Data = 1,
    /// The sender lives, and how far it has come.
    Session = 2,
    /// A receiver misses datagrams.
    Nak = 3,
    /// The sender has heard of missing datagrams.
    Confirm = 4,
    /// Datagrams that this receiver will not get.
    Void = 5,
    /// A receiver asks to be let in.
    Join = 6,
    /// The sender asks the receiver to show that its address is its own.
    Challenge = 7,
    /// The receiver is in.
    Welcome = 8,
    /// Position and window of a receiver.
    Status = 9,
    /// A receiver's clock, sent back.
    Echo = 10,
    /// A receiver goes.
    Leave = 11,
    /// The sender lets a receiver go.
    Eject = 12,
    /// Publishers of topics.
    Advert = 13,
    /// Query for the publishers of topics.
    Query = 14,
    /// Parity of a block of datagrams, from which lost ones are rebuilt.
    Parity = 15,
}

impl Kind {
    /// The kind with this number.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Data,
            2 => Self::Session,
            3 => Self::Nak,
            4 => Self::Confirm,
            5 => Self::Void,
            6 => Self::Join,
            7 => Self::Challenge,
            8 => Self::Welcome,
            9 => Self::Status,
            10 => Self::Echo,
            11 => Self::Leave,
            12 => Self::Eject,
            13 => Self::Advert,
            14 => Self::Query,
            15 => Self::Parity,
            _ => return None,
        })
    }
}

/// Bits of [`FrameHeader::flags`], by kind of frame.
pub mod flag {
    /// Data: sent before.
    pub const AGAIN: u16 = 1;
    /// Session: the sender has closed; no sequence follows.
    pub const CLOSED: u16 = 1;
    /// Session: tell your status now.
    pub const PROBE: u16 = 2;
    /// Nak: answer to me alone.
    pub const ALONE: u16 = 1;
    /// Nak: parity is an answer, too; the receiver holds the rest of the block.
    pub const PARITY: u16 = 2;
    /// Join: go on at the frame's sequence.
    pub const RESUME: u16 = 1;
    /// Join: begin with the oldest that is kept.
    pub const LATE: u16 = 2;
    /// Join: this receiver is in already, and wants further topics.
    pub const FURTHER: u16 = 4;
    /// Join: this receiver rebuilds datagrams from parity.
    pub const FEC: u16 = 8;
    /// Void: nothing in them is on a topic that the receiver wants.
    pub const UNWANTED: u16 = 1;
    /// Void: they are no longer kept.
    pub const GONE: u16 = 2;
    /// Eject: the receiver stood still for too long.
    pub const STALLED: u16 = 1;
    /// Eject: the sender has no place for another receiver.
    pub const CROWDED: u16 = 2;
    /// Eject: the sender does not know this receiver (any more).
    pub const STRANGER: u16 = 3;
    /// Confirm: the repair waits for the budget of repairs.
    pub const BUDGET: u16 = 1;
}

/// The first bytes of every frame.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct FrameHeader {
    /// [`MAGIC`].
    pub magic: U16,
    /// [`VERSION`].
    pub version: u8,
    /// The number of a [`Kind`].
    pub kind: u8,
    /// Bits of [`flag`].
    pub flags: U16,
    /// The frame's length, this header included.
    pub length: U16,
    /// The sender's run.
    pub session: U64,
    /// Sequence, with a meaning that depends on the kind.
    pub sequence: U64,
}

/// Follows the header of data, session and parity frames.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct DataHeader {
    /// Datagrams before this one without content for this receiver.
    pub skipped: U32,
    /// Datagrams before this one that are still retained for repair.
    pub retained: U32,
}

/// A frame that is well formed up to its header.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Type of the frame.
    pub kind: Kind,
    /// Bits of [`flag`].
    pub flags: u16,
    /// The sender's run.
    pub session: u64,
    /// Sequence, with a meaning that depends on the kind.
    pub sequence: u64,
    /// Bytes after the header.
    pub body: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The first frame of `bytes`, and what follows it.
    #[inline]
    pub fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (header, _) = FrameHeader::ref_from_prefix(bytes).ok()?;
        let length = usize::from(header.length.get());
        if header.magic.get() != MAGIC
            || header.version != VERSION
            || length < size_of::<FrameHeader>()
        {
            return None;
        }
        let body = bytes.get(size_of::<FrameHeader>()..length)?;
        let frame = Self {
            kind: Kind::from_number(header.kind)?,
            flags: header.flags.get(),
            session: header.session.get(),
            sequence: header.sequence.get(),
            body,
        };
        Some((frame, &bytes[length..]))
    }

    /// The data header and what follows it, if this is a data, session or parity frame.
    #[inline]
    pub fn data(&self) -> Option<(&'a DataHeader, &'a [u8])> {
        DataHeader::ref_from_prefix(self.body).ok()
    }
}

/// The version of the frame that `bytes` begin with, if it is another than [`VERSION`]. Magic and
/// version are at the same place in every version.
#[inline]
pub fn other_version(bytes: &[u8]) -> Option<u8> {
    let (header, _) = FrameHeader::ref_from_prefix(bytes).ok()?;
    let version = header.version;
    (header.magic.get() == MAGIC && version != VERSION).then_some(version)
}

/// The length of the stream's next frame, as soon as that can be told; an error if what is there
/// is no frame.
///
/// # Errors
/// [`NotAFrame`] if the bytes cannot be a frame's beginning.
#[inline]
pub fn frame_length(bytes: &[u8]) -> Result<Option<usize>, NotAFrame> {
    let Ok((header, _)) = FrameHeader::ref_from_prefix(bytes) else { return Ok(None) };
    let length = usize::from(header.length.get());
    let sane = header.magic.get() == MAGIC
        && header.version == VERSION
        && length >= size_of::<FrameHeader>();
    if sane { Ok(Some(length)) } else { Err(NotAFrame) }
}

/// Bytes that are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a frame of this version")]
pub struct NotAFrame;

const _: () = {
    assert!(size_of::<FrameHeader>() == 24);
    assert!(size_of::<DataHeader>() == 8);
    assert!(DATA_OFFSET == 32);
};

#[cfg(test)]
mod tests;
