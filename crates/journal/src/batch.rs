//! The unit of group commit: records written and synchronized together.

use crate::index::{Index, Mark};
use core::ops::Range;

/// Encoded records on their way to the disk, one part per segment.
#[derive(Debug, Default)]
pub(crate) struct CommitBatch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) parts: Vec<BatchPart>,
    /// The disk was full before all of it was written.
    pub(crate) is_stalled: bool,
    /// Number of durable parts.
    pub(crate) done: usize,
}

/// The records of a batch that go to one segment.
#[derive(Debug)]
pub(crate) struct BatchPart {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) range: Range<usize>,
    /// Last record in this part or before it.
    pub(crate) last: u64,
    /// First record of the segment, if this part holds it.
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
