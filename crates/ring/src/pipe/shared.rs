//! State shared by both ends of a pipe; the last end frees the chunks.

use super::chunk::{Chunk, Head};
use super::pipe_position::PipePosition;
use crate::cursor::Cursor;
use crate::park_flag::ParkFlag;
use core::ptr::null_mut;
use lanecast_base::CachePadded;
use lanecast_base::sync::{Arc, AtomicBool, AtomicPtr, Ordering, UnsafeCell};

/// Memory layout of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PipeLayout {
    /// Bounded: a ring of blocks.
    Ring {
        /// Positions of all blocks.
        total: u64,
        /// Positions that the reader releases at a time.
        release: u64,
        /// Messages that fit at any time.
        capacity: u64,
    },
    /// Unbounded: a chain of chunks.
    Chain {
        /// Blocks of a chunk.
        blocks: usize,
    },
}

/// Words shared by both ends of a pipe, each on its own cache lines.
pub(super) struct Shared<T> {
    /// Park flag of the reader, which the writer reads at each flush.
    pub(super) park_flag: CachePadded<ParkFlag>,
    /// Whether the writer is gone.
    closed: CachePadded<AtomicBool>,
    /// Position before which blocks of a ring may be overwritten.
    pub(super) freed: Cursor,
    /// An empty chunk from the reader for the writer.
    spare: CachePadded<AtomicPtr<Head>>,
    pub(super) room: PipeLayout,
    /// Final positions of both ends, for the one dropped last.
    stops: [UnsafeCell<PipePosition<T>>; 2],
}

/// Index of the reader in `stops`.
pub(super) const READER: usize = 0;
/// Index of the writer in `stops`.
pub(super) const WRITER: usize = 1;

impl<T> Shared<T> {
    pub(super) fn new(start: PipePosition<T>, room: PipeLayout) -> Arc<Self> {
        Arc::new(Self {
            park_flag: CachePadded::default(),
            closed: CachePadded::default(),
            freed: Cursor::new(0),
            spare: CachePadded::new(AtomicPtr::new(null_mut())),
            room,
            stops: [UnsafeCell::new(start), UnsafeCell::new(start)],
        })
    }

    /// Ends the stream: no value is published after this.
    pub(super) fn close(&self) {
        // PAIRS(pipe-end): release here, acquire in `is_closed`: all values are published before.
        self.closed.store(true, Ordering::Release);
    }

    /// Whether the stream has ended: no value beyond the published ones will come.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        // PAIRS(pipe-end): acquire here, release in `close`.
        self.closed.load(Ordering::Acquire)
    }

    /// An empty chunk of `blocks` blocks: the reader's spare one, or a new one.
    pub(super) fn take_chunk(&self, blocks: usize) -> Chunk<T> {
        // PAIRS(spare): acquire here, release in `give_chunk`: the reader has left the chunk.
        let spare = self.spare.swap(null_mut(), Ordering::Acquire);
        Chunk::from_raw(spare).unwrap_or_else(|| Chunk::new(blocks))
    }

    /// Passes an empty chunk to the writer; frees the previous one if the writer did not take it.
    pub(super) fn give_chunk(&self, chunk: Chunk<T>) {
        // PAIRS(spare): release here, acquire in `take_chunk`.
        let before = self.spare.swap(chunk.into_raw(), Ordering::Release);
        if let Some(before) = Chunk::<T>::from_raw(before) {
            // SAFETY: the reader emptied it and passed it before, and the writer did not take it.
            unsafe { before.free() };
        }
    }

    /// Stores the final position of an end that is being dropped.
    ///
    /// # Safety
    /// Only the end `which` calls this, once, just before it drops its reference to the pipe.
    pub(super) unsafe fn stop(&self, which: usize, place: PipePosition<T>) {
        // SAFETY: only this end writes it, and only the last end reads it.
        self.stops[which].with_mut(|stop| unsafe { *stop = place });
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: both ends are gone.
        let [at, end] =
            [READER, WRITER].map(|which| self.stops[which].with(|stop| unsafe { *stop }));
        // Relaxed: both ends are gone.
        let spare = Chunk::from_raw(self.spare.load(Ordering::Relaxed));
        let is_circle = matches!(self.room, PipeLayout::Ring { .. });
        let mut rest = Rest { at, end: end.position(), first: at.chunk, spare, is_circle };
        rest.drop_values();
    }
}

/// Values and chunks that both ends have left. Its drop frees them even if the drop of a value
/// panicked.
struct Rest<T> {
    at: PipePosition<T>,
    end: u64,
    first: Chunk<T>,
    spare: Option<Chunk<T>>,
    is_circle: bool,
}

impl<T> Rest<T> {
    fn drop_values(&mut self) {
        while self.at.position() != self.end {
            if self.at.is_behind() {
                assert!(self.at.advance(Chunk::next), "the writer was there");
            }
            // SAFETY: everything between the two ends was written and not read.
            let value = unsafe { self.at.block.take(self.at.slot) };
            self.at.slot += 1;
            drop(value);
        }
    }
}

impl<T> Drop for Rest<T> {
    fn drop(&mut self) {
        self.drop_values();
        let behind = |chunk: &Chunk<T>| if self.is_circle { None } else { chunk.next() };
        let mut rest = Some(self.first);
        while let Some(chunk) = rest {
            rest = behind(&chunk);
            // SAFETY: both ends are gone, and no remaining chunk links to it.
            unsafe { chunk.free() };
        }
        if let Some(spare) = self.spare {
            // SAFETY: both ends are gone, and it is not in the chain.
            unsafe { spare.free() };
        }
    }
}
