//! Position of an end of a pipe.

use super::block::Block;
use super::chunk::Chunk;

/// A position between two values: in a block, before or behind any of its slots.
pub(super) struct PipePosition<T> {
    pub(super) block: Block<T>,
    /// The slot of the next value; as many as there are if the next block has it.
    pub(super) slot: usize,
    /// The position of the block's first value.
    pub(super) start: u64,
    pub(super) chunk: Chunk<T>,
    /// The chunk's last block.
    pub(super) last: Block<T>,
}

impl<T> Clone for PipePosition<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for PipePosition<T> {}

impl<T> PipePosition<T> {
    /// Positions per block.
    pub(super) const STEP: u64 = Block::<T>::VALUES as u64;

    /// The start of a pipe whose first chunk is `chunk`.
    pub(super) fn new(chunk: Chunk<T>) -> Self {
        Self { block: chunk.first(), slot: 0, start: 0, chunk, last: chunk.last() }
    }

    /// Number of values before this position.
    #[inline(always)]
    pub(super) const fn position(&self) -> u64 {
        self.start + self.slot as u64
    }

    /// Whether the next value lies in the next block.
    #[inline(always)]
    pub(super) const fn is_behind(&self) -> bool {
        self.slot == Block::<T>::VALUES
    }

    /// The position behind the block.
    #[inline(always)]
    pub(super) const fn end(&self) -> u64 {
        self.start + Self::STEP
    }

    /// Moves to the next block; `next_chunk` returns the chunk behind this one. False without a
    /// next chunk.
    #[inline(always)]
    pub(super) fn advance(
        &mut self,
        next_chunk: impl FnOnce(Chunk<T>) -> Option<Chunk<T>>,
    ) -> bool {
        if self.block == self.last {
            let Some(next) = next_chunk(self.chunk) else { return false };
            (self.chunk, self.block, self.last) = (next, next.first(), next.last());
        } else {
            // SAFETY: it is not the chunk's last.
            self.block = unsafe { self.block.next() };
        }
        self.start += Self::STEP;
        self.slot = 0;
        true
    }

    /// Moves back behind the last value of the previous block, which must exist.
    pub(super) fn retreat(&mut self) {
        if self.block == self.chunk.first() {
            let previous = self.chunk.previous().expect("the writer came from there");
            (self.chunk, self.block, self.last) = (previous, previous.last(), previous.last());
        } else {
            // SAFETY: it is not the chunk's first.
            self.block = unsafe { self.block.previous() };
        }
        self.start -= Self::STEP;
        self.slot = Block::<T>::VALUES;
    }
}
