//! The state of the world on disk: entries of records, in journals and in checkpoints. See
//! `docs/protocol/state.md`.
//!
//! ```text
//! checkpoint   CheckpointHeader | block | block | ... | a block without entries
//! block        BlockHeader | entry | entry | ...
//! entry        StateHeader | name | message      a journal's record holds one, or several
//! ```

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The first bytes of a checkpoint.
pub const CHECKPOINT_MAGIC: [u8; 8] = *b"LANESTAT";
/// The version of the layout.
pub const STATE_VERSION: u32 = 2;
/// The oldest version that is still read: without definitions of topics and views.
pub const STATE_VERSION_LEAST: u32 = 1;
/// The longest block, in bytes, its header not counted.
pub const BLOCK_MAX: u32 = 64 << 20;
/// The entry is what a record is now.
pub const STATE_PUT: u16 = 1;
/// The entry says that a record was deleted.
pub const STATE_DELETE: u16 = 2;
/// The entry says that a record's time was over.
pub const STATE_EXPIRE: u16 = 3;
/// The entry begins a topic's records in a checkpoint.
pub const STATE_TOPIC: u16 = 4;
/// The entry is the last number that a client gave one of its messages.
pub const STATE_CLIENT: u16 = 5;
/// The entry is a topic's definition: records behind it are of that.
pub const STATE_DEFINE: u16 = 6;
/// The entry says that a topic was forgotten, with all its records.
pub const STATE_FORGET: u16 = 7;
/// The entry is a view's definition; the view was forgotten if it is empty.
pub const STATE_VIEW: u16 = 8;
/// The entry says that a client's last number was forgotten.
pub const STATE_CLIENT_GONE: u16 = 9;

/// Header of each entry.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct StateHeader {
    /// One of the `STATE_` constants.
    pub kind: U16,
    /// Bytes of the name that follows.
    pub name_length: U16,
    /// Bytes of the message behind the name.
    pub length: U32,
    /// The topic's number.
    pub topic: U32,
    /// Zero.
    pub reserved: U32,
    /// The number of the topic's change.
    pub sequence: U64,
    /// When the record expires, in nanoseconds since 1970; all ones if it does not.
    pub expires_unix_ns: U64,
    /// The checksum that is the record's number, if it was free.
    pub key: U64,
    /// The rest of the checksum.
    pub proof: U64,
}

/// The bytes before an entry's name.
pub const STATE_HEADER: usize = size_of::<StateHeader>();

/// An entry, taken apart.
#[derive(Clone, Copy, Debug)]
pub struct StateEntry<'a> {
    /// The header.
    pub header: StateHeader,
    /// The name.
    pub name: &'a [u8],
    /// The message.
    pub message: &'a [u8],
}

impl<'a> StateEntry<'a> {
    /// Takes the first entry apart, and gives what is behind it. `bytes` may come from anybody;
    /// nothing is given if they are no entry.
    pub fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (header, rest) = StateHeader::read_from_prefix(bytes).ok()?;
        if !(STATE_PUT..=STATE_CLIENT_GONE).contains(&header.kind.get()) {
            return None;
        }
        let (name, rest) = rest.split_at_checked(header.name_length.get().into())?;
        let (message, rest) = rest.split_at_checked(header.length.get() as usize)?;
        Some((Self { header, name, message }, rest))
    }
}

/// A checkpoint's first bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct CheckpointHeader {
    /// [`CHECKPOINT_MAGIC`].
    pub magic: [u8; 8],
    /// [`STATE_VERSION`].
    pub version: U32,
    _reserved: U32,
    /// All records of the journal up to this one are covered.
    pub covered: U64,
    _reserved_too: U32,
    /// The checksum of the bytes before it.
    pub crc: U32,
}

impl CheckpointHeader {
    /// A header that lacks its checksum.
    pub fn new(covered: u64) -> Self {
        Self {
            magic: CHECKPOINT_MAGIC,
            version: STATE_VERSION.into(),
            _reserved: U32::ZERO,
            covered: covered.into(),
            _reserved_too: U32::ZERO,
            crc: U32::ZERO,
        }
    }

    /// The bytes that the checksum covers.
    pub fn checked(&self) -> &[u8] {
        &self.as_bytes()[..size_of::<Self>() - size_of::<U32>()]
    }
}

/// Header of each block.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct BlockHeader {
    /// Bytes of the entries; 0 in the last block.
    pub length: U32,
    /// The checksum of the entries, seeded with the block's number, from 0.
    pub crc: U32,
}

#[cfg(test)]
mod tests;
