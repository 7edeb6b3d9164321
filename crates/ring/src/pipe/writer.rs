//! The writer: the writing end of a pipe.

use super::block::Block;
use super::chunk::Chunk;
use super::error::Full;
use super::parts::Parts;
use super::peer::{Peer, Unbounded};
use super::pipe_position::PipePosition;
use super::shared::{PipeLayout, Shared, WRITER};
use crate::cursor::{DETACHED, sleep_on_any};
use crate::park_flag::{ParkFlag, Sleeper};
use core::marker::PhantomData;
use lanecast_base::sync::{Arc, Ordering};
use std::time::Duration;

/// Distance in blocks at which lines are prefetched for writing from the reader's cache.
const AHEAD: usize = 4;

/// The writing end of a pipe.
///
/// Written values become visible with [`flush`](Self::flush), all at once. A drop flushes complete
/// messages, drops the parts of an incomplete one, and closes the pipe. It wakes no sleeping
/// reader, since a pipe has no signal: [`close`](Self::close) returns whether the caller must.
pub struct Writer<T, K = Unbounded> {
    at: PipePosition<T>,
    /// Start of the first block that the reader has not released.
    limit: u64,
    /// The block of the first unpublished value, and the position behind that block.
    first: Block<T>,
    first_end: u64,
    /// Position up to which values are published.
    flushed: u64,
    parts: Parts<T>,
    sleeper: Sleeper,
    shared: Arc<Shared<T>>,
    _kind: PhantomData<fn() -> K>,
}

// SAFETY: the writer owns unpublished values; published ones pass to another thread.
unsafe impl<T: Send, K> Send for Writer<T, K> {}

impl<T, K> Writer<T, K> {
    pub(super) fn new(start: PipePosition<T>, shared: Arc<Shared<T>>) -> Self {
        let limit = match shared.room {
            PipeLayout::Ring { total, .. } => total,
            PipeLayout::Chain { .. } => u64::MAX,
        };
        Self {
            at: start,
            limit,
            first: start.block,
            first_end: start.end(),
            flushed: 0,
            parts: Parts::default(),
            sleeper: Sleeper::default(),
            shared,
            _kind: PhantomData,
        }
    }

    /// Appends a message, or the last part of one. Invisible until flushed.
    ///
    /// # Errors
    /// Returns the value if the pipe is bounded and full. Flush before waiting for space: the
    /// reader reads flushed values only.
    #[inline(always)]
    pub fn try_write(&mut self, value: T) -> Result<(), Full<T>> {
        self.append(value)?;
        if self.parts.are_open() {
            self.parts.complete(self.at.position());
        }
        Ok(())
    }

    /// Appends a message and publishes everything, as [`try_write`](Self::try_write) and
    /// [`flush`](Self::flush) do, in half the time if what is unpublished shares the message's
    /// block.
    ///
    /// # Errors
    /// Returns the value if the pipe is bounded and full; nothing is published then.
    #[inline(always)]
    pub fn try_write_and_flush(&mut self, value: T) -> Result<Peer, Full<T>> {
        // Loaded before the first store: see `Producer::put`.
        let PipePosition { block, slot, start, .. } = self.at;
        if self.first != block || self.at.is_behind() || self.parts.is_any() {
            return self.write_then_flush(value);
        }
        let park_flag: &ParkFlag = &self.shared.park_flag;
        let end = start + slot as u64 + 1;
        // SAFETY: the slot is in the block, and the reader does not go past what is published.
        unsafe { block.put(slot, value) };
        (self.at.slot, self.flushed) = (slot + 1, end);
        // PAIRS(pipe): release here, acquire in `Reader::poll_block`.
        block.word().store(end, Ordering::Release);
        Ok(if park_flag.has_sleepers() { self.claim_wake_up() } else { Peer::Awake })
    }

    #[inline(never)]
    fn write_then_flush(&mut self, value: T) -> Result<Peer, Full<T>> {
        self.try_write(value)?;
        Ok(self.flush())
    }

    /// Appends a part of an incomplete message: invisible until a [`try_write`](Self::try_write)
    /// has appended the last part and a flush followed.
    ///
    /// # Errors
    /// Returns the value if the pipe is bounded and full. A message of more parts than the
    /// [capacity](Self::capacity) may never fit.
    pub fn try_write_part(&mut self, value: T) -> Result<(), Full<T>> {
        self.append(value)?;
        let mut start = self.at;
        start.slot -= 1;
        self.parts.open(start);
        Ok(())
    }

    #[inline(always)]
    fn append(&mut self, value: T) -> Result<(), Full<T>> {
        if self.at.is_behind() && !self.enter_next() {
            return Err(Full(value));
        }
        // SAFETY: the slot is in the block, and the reader does not go past what is published.
        unsafe { self.at.block.put(self.at.slot, value) };
        self.at.slot += 1;
        Ok(())
    }

    /// Moves to the next block, if there is space.
    #[inline]
    fn enter_next(&mut self) -> bool {
        let start = self.at.end();
        if start == self.limit && !self.update_limit() {
            return false;
        }
        let left = self.at.block;
        let shared = &self.shared;
        self.at.advance(|chunk| Some(next_chunk(chunk, shared)));
        if start == self.flushed {
            (self.first, self.first_end) = (self.at.block, self.at.end());
        } else if left != self.first {
            // Relaxed: the reader comes here only after the first block is published.
            left.word().store(start, Ordering::Relaxed);
        }
        self.at.block.prefetch_for_writing(AHEAD);
        true
    }

    /// Reads the reader's position; returns whether it has released space.
    #[cold]
    fn update_limit(&mut self) -> bool {
        let PipeLayout::Ring { total, .. } = self.shared.room else { return true };
        let freed = self.shared.freed.get();
        // A dropped reader releases no space: its values are dropped with the pipe.
        if freed != DETACHED {
            self.limit = freed + total;
        }
        self.at.end() != self.limit
    }

    /// Removes and returns the newest unflushed value, a part or a whole message.
    ///
    /// Without its last part, a message is incomplete again.
    pub fn unwrite(&mut self) -> Option<T> {
        if self.at.position() == self.flushed {
            return None;
        }
        if self.at.slot == 0 {
            self.at.retreat();
            if self.at.block != self.first {
                // Relaxed: the reader comes here only after the first block is published. The block
                // was marked full when the writer left it.
                self.at.block.word().store(self.at.start, Ordering::Relaxed);
            }
        }
        self.at.slot -= 1;
        // SAFETY: the value was written and not published, so only the writer accesses it.
        let value = unsafe { self.at.block.take(self.at.slot) };
        self.parts.unwrite(self.at.position());
        Some(value)
    }

    /// Publishes every complete message, all at once; returns whether the reader sleeps. Without
    /// messages it returns [`Peer::Awake`].
    #[inline(always)]
    pub fn flush(&mut self) -> Peer {
        if self.parts.is_any() {
            return self.flush_parts();
        }
        let at = self.at;
        self.publish(at)
    }

    #[cold]
    fn flush_parts(&mut self) -> Peer {
        let complete = self.parts.flush().unwrap_or(self.at);
        self.publish(complete)
    }

    /// Publishes everything before `to`.
    ///
    /// The reader leaves the first block only once it is published to its end. So the word of the
    /// last block is written first and that of the first block last; blocks in between were marked
    /// full when the writer left them.
    #[inline(always)]
    fn publish(&mut self, to: PipePosition<T>) -> Peer {
        if to.position() == self.flushed {
            return Peer::Awake;
        }
        self.flushed = to.position();
        if to.block == self.first {
            // PAIRS(pipe): release here, acquire in `Reader::poll_block`.
            self.first.word().store(to.position(), Ordering::Release);
        } else {
            // Relaxed: the reader comes here only after the first block is published.
            to.block.word().store(to.position(), Ordering::Relaxed);
            // PAIRS(pipe): release here, acquire in `Reader::poll_block`.
            self.first.word().store(self.first_end, Ordering::Release);
            (self.first, self.first_end) = (to.block, to.end());
        }
        self.peer()
    }

    #[inline(always)]
    fn peer(&self) -> Peer {
        if self.shared.park_flag.has_sleepers() { self.claim_wake_up() } else { Peer::Awake }
    }

    #[cold]
    fn claim_wake_up(&self) -> Peer {
        if self.shared.park_flag.take() {
            Peer::Asleep
        } else if self.is_closed() {
            Peer::Gone
        } else {
            Peer::Awake
        }
    }

    /// Closes the pipe, as a drop does; returns whether the reader sleeps.
    ///
    /// If the drop of a part panics, the pipe is closed, and the reader may sleep: signal.
    pub fn close(mut self) -> Peer {
        self.finish()
    }

    /// Closes the pipe, once.
    pub(super) fn finish(&mut self) -> Peer {
        if self.shared.is_closed() {
            return Peer::Awake;
        }
        let flushed = self.flush();
        self.shared.close();
        let peer = if flushed == Peer::Asleep { flushed } else { self.peer() };
        // Last: the drop of a part may panic, and the reader must see the end all the same.
        while let Some(part) = self.unwrite() {
            drop(part);
        }
        peer
    }

    /// Whether the reader is gone, so that no value will be read any more.
    #[inline(always)]
    pub fn is_closed(&self) -> bool {
        self.shared.park_flag.is_gone()
    }

    /// Number of messages that fit at any time; `None` if the pipe is unbounded.
    pub fn capacity(&self) -> Option<usize> {
        match self.shared.room {
            PipeLayout::Ring { capacity, .. } => Some(capacity as usize),
            PipeLayout::Chain { .. } => None,
        }
    }

    /// Sleeps until the reader releases space or is dropped, at most `limit`. May wake early.
    pub(super) fn sleep_until_space(&mut self, limit: Duration) {
        let PipeLayout::Ring { total, .. } = self.shared.room else { return };
        let freed = &self.shared.freed;
        let mark = freed.mark(&mut self.sleeper);
        if freed.get() == self.limit - total {
            sleep_on_any([freed.word(mark)], limit);
        }
    }

    /// Notes that space was found without a sleep.
    pub(super) fn found_space(&mut self) {
        self.shared.freed.found(&mut self.sleeper);
    }
}

impl<T> Writer<T, Unbounded> {
    /// Appends a message, or the last part of one. Invisible until flushed.
    #[inline(always)]
    pub fn write(&mut self, value: T) {
        let written = self.try_write(value);
        debug_assert!(written.is_ok(), "an unbounded pipe is never full");
    }

    /// Appends a message and publishes everything: see
    /// [`try_write_and_flush`](Self::try_write_and_flush).
    #[inline(always)]
    pub fn write_and_flush(&mut self, value: T) -> Peer {
        let Ok(peer) = self.try_write_and_flush(value) else {
            unreachable!("an unbounded pipe is never full")
        };
        peer
    }

    /// Appends a part of an incomplete message: invisible until a [`write`](Self::write) has
    /// appended the last part and a flush followed.
    pub fn write_part(&mut self, value: T) {
        let written = self.try_write_part(value);
        debug_assert!(written.is_ok(), "an unbounded pipe is never full");
    }
}

/// The chunk behind `chunk`: in a ring itself, in a chain the one left by an `unwrite`, or an empty
/// one.
#[cold]
fn next_chunk<T>(chunk: Chunk<T>, shared: &Shared<T>) -> Chunk<T> {
    chunk.next().unwrap_or_else(|| {
        let PipeLayout::Chain { blocks } = shared.room else { unreachable!("a circle is closed") };
        let next = shared.take_chunk(blocks);
        chunk.link(next);
        next
    })
}

impl<T, K> Drop for Writer<T, K> {
    fn drop(&mut self) {
        // The result is unused: a writer has no signal for the reader.
        let _ = Leaving(self).0.finish();
    }
}

/// A writer being dropped, which stores its position even if the drop of a part panics: the last
/// end drops the remaining parts.
struct Leaving<'a, T, K>(&'a mut Writer<T, K>);

impl<T, K> Drop for Leaving<'_, T, K> {
    fn drop(&mut self) {
        let Writer { shared, at, sleeper, .. } = &mut *self.0;
        // SAFETY: only the drop of `shared` follows.
        unsafe { shared.stop(WRITER, *at) };
        shared.freed.forget(sleeper);
    }
}

impl<T, K> core::fmt::Debug for Writer<T, K> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Writer")
            .field("capacity", &self.capacity())
            .field("written", &self.at.position())
            .field("flushed", &self.flushed)
            .finish_non_exhaustive()
    }
}
