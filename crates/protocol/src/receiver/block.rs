//! A block of items, checked.

use super::Delivery;
use lanecast_wire::net::{BlockHeader, Items};
use std::ops::Range;

/// The most items that a frame has room for.
pub(super) const ITEMS_MAX: u64 = 1 << 14;

/// A block whose items are well formed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    pub(super) sequence: u64,
    pub(super) piece: u64,
    pub(super) message: u64,
    pub(super) shape: Shape,
    pub(super) items: &'a [u8],
    /// Where the items are in the caller's buffer; `None` if they were kept.
    pub(super) at: Option<u32>,
}

/// What a block's items are, taken together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) count: u64,
    /// Whether its first item begins a message.
    pub(super) begins: bool,
    /// Whether it is nothing but whole messages, whose last batch ends in it.
    pub(super) plain: bool,
}

impl Shape {
    /// Walks the items once; `None` if they are not what the header says.
    #[inline]
    pub(super) fn of(header: &BlockHeader, items: Items<'_>) -> Option<Self> {
        let mut count = 0u64;
        let (mut begins, mut closed, mut sound, mut goes_on) = (true, true, true, false);
        let mut whole = true;
        for item in items {
            let flags = item.flags;
            if count == 0 {
                begins = flags.begins();
                closed = begins;
            }
            sound &= flags.begins() == closed;
            closed = flags.ends();
            goes_on = flags.goes_on();
            whole &= flags.is_whole();
            count += 1;
        }
        let sound = sound && count > 0 && count == u64::from(header.count.get());
        sound.then_some(Self { count, begins, plain: whole && !goes_on })
    }
}

impl Block<'_> {
    /// The delivery of the items in `range`.
    #[inline]
    pub(super) fn run(&self, slot: u32, range: Range<usize>) -> Delivery {
        match self.at {
            Some(at) => Delivery::Borrowed {
                slot,
                start: at + range.start as u32,
                end: at + range.end as u32,
            },
            None => self.copy(slot, range),
        }
    }

    /// The same, copied.
    pub(super) fn copy(&self, slot: u32, range: Range<usize>) -> Delivery {
        Delivery::Owned { slot, items: self.items[range].into() }
    }
}

/// A block that waits for what comes before it.
#[derive(Debug)]
pub(super) struct KeptBlock {
    pub(super) sequence: u64,
    pub(super) piece: u64,
    pub(super) message: u64,
    pub(super) shape: Shape,
    pub(super) items: Box<[u8]>,
}

impl KeptBlock {
    pub(super) fn new(block: &Block<'_>) -> Self {
        let Block { sequence, piece, message, shape, items, .. } = *block;
        Self { sequence, piece, message, shape, items: items.into() }
    }

    pub(super) fn as_block(&self) -> Block<'_> {
        let Self { sequence, piece, message, shape, ref items } = *self;
        Block { sequence, piece, message, shape, items, at: None }
    }
}

/// Bounds the bytes that wait.
#[derive(Debug)]
pub(super) struct Store {
    used: usize,
    max: usize,
}

impl Store {
    /// What keeping anything takes beside its bytes.
    const OVERHEAD: usize = 96;

    pub(super) const fn new(max: usize) -> Self {
        Self { used: 0, max }
    }

    /// Room for `count` messages of that length.
    pub(super) const fn for_messages(count: usize, bytes: usize) -> Self {
        Self::new(bytes.saturating_add(Self::OVERHEAD).saturating_mul(count))
    }

    /// Reserves room; false if there is none.
    #[must_use]
    pub(super) const fn take(&mut self, bytes: usize) -> bool {
        let used = self.used + bytes + Self::OVERHEAD;
        let fits = used <= self.max;
        if fits {
            self.used = used;
        }
        fits
    }

    /// Gives back what `take` reserved.
    pub(super) const fn give(&mut self, bytes: usize) {
        self.used -= bytes + Self::OVERHEAD;
    }

    pub(super) const fn used(&self) -> usize {
        self.used
    }
}
