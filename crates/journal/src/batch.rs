//! What is written and synchronised together.

use crate::index::{Index, Mark};
use core::ops::Range;

/// Records, encoded, on their way to the disk: in one piece for each segment that they lie in.
#[derive(Debug, Default)]
pub(crate) struct CommitBatch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) parts: Vec<BatchPart>,
    /// There was no space for all of it.
    pub(crate) is_stalled: bool,
    /// How many pieces are durable already.
    pub(crate) done: usize,
}

/// The part of a group that lies in one segment.
#[derive(Debug)]
pub(crate) struct BatchPart {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) range: Range<usize>,
    /// The last record in it or before it.
    pub(crate) last: u64,
    /// The first record of the segment, if it is in this piece.
    pub(crate) first: Option<Mark>,
    pub(crate) index: Index,
}

impl CommitBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.parts.clear();
        self.done = 0;
        self.is_stalled = false;
    }
}
