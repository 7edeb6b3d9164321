//! A validated block of items, and the reorder buffer's byte budget.

use super::delivery::Delivery;
use lanecast_wire::net::{BlockHeader, Items};
use std::ops::Range;

/// Most items in a frame.
pub(super) const ITEMS_MAX: u64 = 1 << 14;

/// A block whose items are well formed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    pub(super) sequence: u64,
    pub(super) fragment: u64,
    pub(super) message: u64,
    pub(super) shape: BlockShape,
    pub(super) items: &'a [u8],
    /// Offset of the items in the caller's buffer; `None` if they were copied.
    pub(super) at: Option<u32>,
    /// Parts that were delivered already.
    pub(super) early: EarlyParts,
}

/// Summary of a block's items.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockShape {
    pub(super) count: u64,
    /// Whether its first item begins a message.
    pub(super) begins: bool,
    /// Whether the block has only whole messages and ends its last batch.
    pub(super) plain: bool,
    /// Whether its last item leaves its message open.
    pub(super) open: bool,
    /// Number of messages that end in it.
    pub(super) ends: u64,
}

impl BlockShape {
    /// Validates the items in one pass; `None` if they contradict the header.
    #[inline]
    pub(super) fn of(header: &BlockHeader, items: Items<'_>) -> Option<Self> {
        let mut count = 0u64;
        let (mut begins, mut closed, mut valid, mut goes_on) = (true, true, true, false);
        let (mut whole, mut ends) = (true, 0);
        for item in items {
            let flags = item.flags;
            if count == 0 {
                begins = flags.begins();
                closed = begins;
            }
            // A begin must follow an end, and nothing else may.
            valid &= flags.begins() == closed;
            closed = flags.ends();
            goes_on = flags.goes_on();
            whole &= flags.is_whole();
            ends += u64::from(closed);
            count += 1;
        }
        // A truncated block has fewer items than its header says.
        let valid = valid && count > 0 && count == u64::from(header.count.get());
        let plain = whole && !goes_on;
        valid.then_some(Self { count, begins, plain, open: !closed, ends })
    }

    /// Whether the block has but a fragment that neither begins nor ends its message.
    pub(super) const fn is_amid_message(&self) -> bool {
        !self.begins && self.ends == 0
    }
}

impl Block<'_> {
    /// Delivery of the items in `range`, the first of which is message `first`.
    #[inline]
    pub(super) fn run(&self, slot: u32, first: u64, range: Range<usize>) -> Delivery {
        match self.at {
            Some(at) => Delivery::Borrowed {
                slot,
                first,
                start: at + range.start as u32,
                end: at + range.end as u32,
            },
            // A queued block: the buffer that it came in may be overwritten.
            None => self.copy(slot, first, range),
        }
    }

    /// Whether everything in the block was delivered, if only as a part of something longer.
    #[inline]
    pub(super) const fn is_delivered(&self) -> bool {
        let EarlyParts { whole, first, last } = self.early;
        whole && (first || self.shape.begins) && (last || !self.shape.open)
    }

    /// As [`run`](Self::run), copied.
    pub(super) fn copy(&self, slot: u32, first: u64, range: Range<usize>) -> Delivery {
        Delivery::Owned { slot, first, items: self.items[range].into() }
    }
}

/// Parts of a block that were delivered before its turn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EarlyParts {
    /// The messages that it has from their first byte to their last.
    pub(super) whole: bool,
    /// The message that its first item continues.
    pub(super) first: bool,
    /// The message that its last item begins.
    pub(super) last: bool,
}

/// A block in the reorder buffer.
#[derive(Debug)]
pub(super) struct QueuedBlock {
    pub(super) sequence: u64,
    pub(super) fragment: u64,
    pub(super) message: u64,
    pub(super) shape: BlockShape,
    pub(super) items: Box<[u8]>,
    pub(super) early: EarlyParts,
}

impl QueuedBlock {
    pub(super) fn new(block: &Block<'_>) -> Self {
        let Block { sequence, fragment, message, shape, items, early, .. } = *block;
        Self { sequence, fragment, message, shape, items: items.into(), early }
    }

    pub(super) fn as_block(&self) -> Block<'_> {
        let Self { sequence, fragment, message, shape, ref items, early } = *self;
        Block { sequence, fragment, message, shape, items, at: None, early }
    }

    /// Number of the fragment after the last one.
    pub(super) const fn end(&self) -> u64 {
        self.fragment.wrapping_add(self.shape.count)
    }
}

/// Limit of bytes kept.
#[derive(Debug)]
pub(super) struct ByteBudget {
    used: usize,
    max: usize,
}

impl ByteBudget {
    /// Bytes accounted per entry in addition to its own.
    const OVERHEAD: usize = 96;

    pub(super) const fn new(max: usize) -> Self {
        Self { used: 0, max }
    }

    /// Budget for `count` messages of `bytes` bytes.
    pub(super) const fn for_messages(count: usize, bytes: usize) -> Self {
        Self::new(bytes.saturating_add(Self::OVERHEAD).saturating_mul(count))
    }

    /// Reserves `bytes`; false if they exceed the budget.
    #[must_use]
    pub(super) const fn reserve(&mut self, bytes: usize) -> bool {
        // With overhead: very many empty blocks would otherwise cost nothing.
        let used = self.used + bytes + Self::OVERHEAD;
        let fits = used <= self.max;
        if fits {
            self.used = used;
        }
        fits
    }

    /// Releases `bytes` of an entry that stays.
    pub(super) const fn shrink(&mut self, bytes: usize) {
        self.used -= bytes;
    }

    /// Releases reserved bytes.
    pub(super) const fn release(&mut self, bytes: usize) {
        self.used -= bytes + Self::OVERHEAD;
    }

    pub(super) const fn used(&self) -> usize {
        self.used
    }
}
