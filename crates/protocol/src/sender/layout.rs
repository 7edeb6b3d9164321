//! Layout state of the packetizer: positions of topics, and the write position.

use super::window::MANY;
use std::ops::Range;

/// [`TopicState::last`] of a topic without a staged item.
pub(super) const NOWHERE: usize = usize::MAX;
/// [`TopicState::last`] after a message that was counted, but not written: no subscriber.
pub(super) const NOT_LAID: usize = usize::MAX - 1;

/// Position within a topic: numbers of the next fragment and of the next message.
///
/// A message that fits in one datagram is one fragment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) fragment: u64,
    pub(super) message: u64,
}

#[derive(Debug)]
pub(super) struct TopicState {
    pub(super) staged: Position,
    pub(super) published: Position,
    /// Offset of the header of its last staged item.
    pub(super) last: usize,
    pub(super) subscribed: bool,
}

impl TopicState {
    pub(super) fn new(subscribed: bool) -> Self {
        let zero = Position::default();
        Self { staged: zero, published: zero, last: NOWHERE, subscribed }
    }

    /// Counts a message that is not written; returns what [`last`](Self::last) was.
    pub(super) const fn count_unwritten(&mut self) -> usize {
        self.staged.fragment = self.staged.fragment.wrapping_add(1);
        self.staged.message = self.staged.message.wrapping_add(1);
        core::mem::replace(&mut self.last, NOT_LAID)
    }
}

/// Write position: where the next item goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WriteAt {
    /// Sequence of the open datagram, or of the next one.
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) position: u64,
    /// Offset of the open datagram.
    pub(super) start: usize,
    /// Bytes of the open datagram so far; 0 if none is open.
    pub(super) used: usize,
    /// Offset of the open block.
    pub(super) block: usize,
    /// Topic of the open block; [`MANY`] if none is open.
    pub(super) topic: u32,
    /// Items in the open block.
    pub(super) count: u16,
    /// The only topic of the open datagram; [`MANY`] if it has several.
    pub(super) only: u32,
}

impl WriteAt {
    /// No open datagram; the next one has sequence `next` and follows position `end`.
    pub(super) const fn new(next: u64, end: u64) -> Self {
        let (position, start, used, block, count) = (0, 0, 0, 0, 0);
        Self { next, end, position, start, used, block, topic: MANY, count, only: MANY }
    }
}

/// The message staged last.
#[derive(Debug)]
pub(super) enum LastStaged {
    None,
    InPlace(Range<usize>),
    /// In the scratch buffer, to be split.
    Long {
        topic: u32,
        len: usize,
    },
    /// In the scratch buffer, to be discarded: the topic has no subscriber.
    Discarded(usize),
}
