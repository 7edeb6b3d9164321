//! Body of a data frame: blocks, one for each run of messages on one topic, of items.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Begins a run of items on one topic.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct BlockHeader {
    /// The topic's number within the session.
    pub topic: U32,
    /// The bytes of items that follow, padding included. Zero: the rest of the frame is padding.
    pub length: U16,
    /// Items that follow.
    pub count: U16,
    /// The number of the first item, counted on the topic.
    pub fragment: U64,
    /// The number of the message that the first item belongs to, counted on the topic.
    pub message: U64,
}

/// Begins an item: a message, or a fragment of one.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ItemHeader {
    /// The item's bytes, without this header and the padding.
    pub length: U16,
    /// Bits of [`ItemFlags`].
    pub flags: U16,
}

/// Part of a message that an item holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemFlags(pub u16);

impl ItemFlags {
    /// The first fragment of a message.
    pub const BEGIN: u16 = 1;
    /// The last fragment of a message.
    pub const END: u16 = 2;
    /// The batch that the message belongs to goes on, on this topic.
    pub const MORE: u16 = 4;
    /// A message in one piece.
    pub const WHOLE: u16 = Self::BEGIN | Self::END;

    /// Whether the item is a message in one piece.
    #[inline]
    pub const fn is_whole(self) -> bool {
        self.0 & Self::WHOLE == Self::WHOLE
    }

    /// Whether it begins a message.
    #[inline]
    pub const fn begins(self) -> bool {
        self.0 & Self::BEGIN != 0
    }

    /// Whether it ends a message.
    #[inline]
    pub const fn ends(self) -> bool {
        self.0 & Self::END != 0
    }

    /// Whether its batch goes on.
    #[inline]
    pub const fn goes_on(self) -> bool {
        self.0 & Self::MORE != 0
    }
}

/// Prefix of the first fragment: the message's whole length, as a `u32`.
pub const TOTAL_BYTES: usize = 4;

const ITEM: usize = size_of::<ItemHeader>();
const ALIGN: usize = 4;

/// The bytes that an item of `length` takes in its block.
#[inline]
pub const fn item_bytes(length: usize) -> usize {
    ITEM + length.next_multiple_of(ALIGN)
}

/// One item of a block.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// Part of the message.
    pub flags: ItemFlags,
    /// The message's bytes, or those of the fragment.
    pub bytes: &'a [u8],
}

/// The blocks of a frame; ends early at the first that is not well formed.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a> {
    rest: &'a [u8],
}

impl<'a> Blocks<'a> {
    /// The blocks in what follows a frame's [`DataHeader`](super::DataHeader).
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Remaining bytes.
    #[inline]
    pub const fn left(&self) -> usize {
        self.rest.len()
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = (&'a BlockHeader, Items<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (header, rest) = BlockHeader::ref_from_prefix(self.rest).ok()?;
        let length = usize::from(header.length.get());
        if length == 0 || length > rest.len() {
            self.rest = &[];
            return None;
        }
        let (items, rest) = rest.split_at(length);
        self.rest = rest;
        Some((header, Items::new(items)))
    }
}

/// The items of a block; ends early at the first that is not well formed.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a> {
    rest: &'a [u8],
}

impl<'a> Items<'a> {
    /// The items in `bytes`, such as [`rest`](Self::rest) gave.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes of the items that have not been read.
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        let (header, rest) = ItemHeader::ref_from_prefix(self.rest).ok()?;
        let length = usize::from(header.length.get());
        let Some(bytes) = rest.get(..length) else {
            self.rest = &[];
            return None;
        };
        // The last item's padding may be missing.
        self.rest = rest.get(length.next_multiple_of(ALIGN)..).unwrap_or_default();
        Some(Item { flags: ItemFlags(header.flags.get()), bytes })
    }
}

const _: () = {
    assert!(size_of::<BlockHeader>() == 24);
    assert!(size_of::<ItemHeader>() == 4);
};
