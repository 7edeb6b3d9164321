//! What both ends of a pipe know.

use super::chunk::{Chunk, Head};
use super::pipe_position::PipePosition;
use crate::cursor::Cursor;
use crate::park_flag::ParkFlag;
use core::ptr::null_mut;
use lanecast_base::CachePadded;
use lanecast_base::sync::{Arc, AtomicBool, AtomicPtr, Ordering, UnsafeCell};

/// How a pipe finds room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PipeLayout {
    /// Blocks in a circle, given back so many positions at a time.
    Ring {
        /// The positions of all blocks.
        total: u64,
        /// The reader gives room back once it is this much.
        release: u64,
        /// The messages that fit at any time.
        capacity: u64,
    },
    /// Chunks of so many blocks in a chain.
    Chain {
        /// The blocks of a chunk.
        blocks: usize,
    },
}

/// The words that the ends of a pipe meet on, each on lines of its own.
pub(super) struct Shared<T> {
    /// Whether the reader sleeps: written by it, read by the writer at each flush.
    pub(super) park_flag: CachePadded<ParkFlag>,
    /// Whether the writer is gone.
    closed: CachePadded<AtomicBool>,
    /// The position before which blocks of a circle may be written anew.
    pub(super) freed: Cursor,
    /// A chunk that the reader has emptied and the writer may fill.
    spare: CachePadded<AtomicPtr<Head>>,
    pub(super) room: PipeLayout,
    /// Where the ends stopped, for the one that goes last.
    stops: [UnsafeCell<PipePosition<T>>; 2],
}

/// The index of the reader's end in `stops`.
pub(super) const READER: usize = 0;
/// The index of the writer's.
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

    /// Ends the stream: nothing is published after this.
    pub(super) fn close(&self) {
        // PAIRS(pipe-end): release here, acquire in `is_closed`: everything was published before.
        self.closed.store(true, Ordering::Release);
    }

    /// Whether the stream has ended: what is published now is all that will ever be.
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

    /// Gives the writer a chunk that the reader has emptied, or frees the one before it.
    pub(super) fn give_chunk(&self, chunk: Chunk<T>) {
        // PAIRS(spare): release here, acquire in `take_chunk`.
        let before = self.spare.swap(chunk.into_raw(), Ordering::Release);
        if let Some(before) = Chunk::<T>::from_raw(before) {
            // SAFETY: the reader emptied and gave it itself, and the writer did not take it.
            unsafe { before.free() };
        }
    }

    /// Notes where an end stops; that end does not come back.
    ///
    /// # Safety
    /// Only the end `which` calls this, once, as its last act but for dropping the pipe.
    pub(super) unsafe fn stop(&self, which: usize, place: PipePosition<T>) {
        // SAFETY: only this end writes here, and only the last one to go reads.
        self.stops[which].with_mut(|stop| unsafe { *stop = place });
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: both ends are gone.
        let [mut at, end] =
            [READER, WRITER].map(|which| self.stops[which].with(|stop| unsafe { *stop }));
        let first = at.chunk;
        while at.position() != end.position() {
            if at.is_behind() {
                assert!(at.advance(Chunk::next), "the writer was there");
            }
            // SAFETY: everything between the two ends was written and not read.
            drop(unsafe { at.block.take(at.slot) });
            at.slot += 1;
        }
        // Relaxed: both ends are gone.
        let spare = Chunk::<T>::from_raw(self.spare.load(Ordering::Relaxed));
        let in_circle = matches!(self.room, PipeLayout::Ring { .. });
        let behind = |chunk: &Chunk<T>| if in_circle { None } else { chunk.next() };
        let mut rest = Some(first);
        while let Some(chunk) = rest {
            rest = behind(&chunk);
            // SAFETY: nobody uses it any more, and no other chunk leads back to it.
            unsafe { chunk.free() };
        }
        if let Some(spare) = spare {
            // SAFETY: nobody uses it any more, and it is not in the chain.
            unsafe { spare.free() };
        }
    }
}
