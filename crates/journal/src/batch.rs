//! The unit of group commit: records written and synchronized together.

use crate::direct::BLOCK;
use crate::index::{Index, Mark};
use core::ops::Range;
use lanecast_base::prefetch_for_writing;

/// Bytes of a cache line.
const LINE: usize = 64;
/// Most bytes that are fetched ahead of a record.
const PREFETCHED: usize = 4 << 10;

/// Encoded records on their way to the disk, one part per segment.
#[derive(Debug, Default)]
pub(crate) struct CommitBatch {
    pub(crate) bytes: Vec<u8>,
    /// Bytes that belong to no part.
    gaps: usize,
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

    /// Bytes of all parts.
    pub(crate) fn length(&self) -> usize {
        self.bytes.len() - self.gaps
    }

    /// Has the next bytes, which go to `offset` of a file, stand in their block of memory as in
    /// that of the file: long parts can be written past the page cache. Memory that grows may move;
    /// the next batches are as long, and stay.
    pub(crate) fn align(&mut self, offset: u64) {
        let end = self.bytes.as_ptr().addr() + self.bytes.len();
        let gap = (offset as usize).wrapping_sub(end) % BLOCK;
        self.bytes.resize(self.bytes.len() + gap, 0);
        self.gaps += gap;
    }

    /// Fetches the memory of the next record, as long as the last one: the unlocking of the queue
    /// waits until what was written has arrived in its cache lines.
    pub(crate) fn prefetch(&mut self, length: usize) {
        let spare = self.bytes.spare_capacity_mut();
        let next = &spare[..spare.len().min(length).min(PREFETCHED)];
        next.iter().step_by(LINE).for_each(|line| prefetch_for_writing(line.as_ptr()));
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.gaps = 0;
        self.parts.clear();
        self.done = 0;
        self.is_stalled = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_in_memory_as_in_their_files() {
        let mut batch = CommitBatch::default();
        batch.bytes.reserve(64 << 10);
        for _ in 0..2 {
            for offset in [512, 70_000, 8, 4096] {
                batch.align(offset);
                let address = batch.bytes.as_ptr().addr() + batch.bytes.len();
                assert_eq!(address % BLOCK, offset as usize % BLOCK);
                batch.bytes.extend_from_slice(&[1; 5_000]);
            }
            assert_eq!(batch.length(), 20_000);
            batch.clear();
            assert_eq!(batch.length(), 0);
        }
    }
}
