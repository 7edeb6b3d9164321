//! The writing end.

use super::block::Block;
use super::chunk::Chunk;
use super::error::Full;
use super::parts::Parts;
use super::peer::{Peer, Unbounded};
use super::pipe_position::PipePosition;
use super::shared::{PipeLayout, Shared, WRITER};
use crate::cursor::DETACHED;
use crate::park_flag::Sleeper;
use core::marker::PhantomData;
use lanecast_base::sync::{Arc, Ordering};
use lanecast_os::futex;
use std::time::Duration;

/// How many blocks ahead lines are taken back from the reader, so that writing need not wait.
const AHEAD: usize = 4;

/// The writing end of a pipe.
///
/// What is written becomes visible with [`flush`](Self::flush), all at once. Dropping the end
/// flushes complete messages, drops parts of an incomplete one, and closes the pipe. It does not
/// wake a reader that sleeps, because the pipe does not know how: [`close`](Self::close) says
/// whether somebody must.
pub struct Writer<T, K = Unbounded> {
    at: PipePosition<T>,
    /// Blocks that start here may not be entered before the reader has given them back.
    limit: u64,
    /// The block of the first value that is not published, and the position behind that block.
    first: Block<T>,
    first_end: u64,
    /// Everything before is published.
    flushed: u64,
    parts: Parts<T>,
    sleeper: Sleeper,
    shared: Arc<Shared<T>>,
    _kind: PhantomData<fn() -> K>,
}

// SAFETY: the end owns what it has not published; publishing hands values to another thread.
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

    /// Appends a message, or the last part of one. Nobody sees it before it is flushed.
    ///
    /// # Errors
    /// The value comes back if the pipe is bounded and full. Flush before waiting for room: the
    /// reader cannot empty what it does not see.
    #[inline(always)]
    pub fn try_write(&mut self, value: T) -> Result<(), Full<T>> {
        self.append(value)?;
        if self.parts.are_open() {
            self.parts.complete(self.at.position());
        }
        Ok(())
    }

    /// Appends a part of a message that is not complete yet: nobody sees it before a
    /// [`try_write`](Self::try_write) has appended the last part and was flushed.
    ///
    /// # Errors
    /// The value comes back if the pipe is bounded and full. A message of more parts than the
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

    /// Goes on to the next block, if there is room.
    #[inline]
    fn enter_next(&mut self) -> bool {
        let start = self.at.end();
        if start == self.limit && !self.look_for_room() {
            return false;
        }
        let left = self.at.block;
        let shared = &self.shared;
        self.at.advance(|chunk| Some(next_chunk(chunk, shared)));
        if start == self.flushed {
            (self.first, self.first_end) = (self.at.block, self.at.end());
        } else if left != self.first {
            // Relaxed: nobody gets here before the first block is published.
            left.word().store(start, Ordering::Relaxed);
        }
        self.at.block.prefetch_for_writing(AHEAD);
        true
    }

    /// Whether the reader has given back room since the last look.
    #[cold]
    fn look_for_room(&mut self) -> bool {
        let PipeLayout::Ring { total, .. } = self.shared.room else { return true };
        let freed = self.shared.freed.get();
        // A reader that is gone frees nothing: what it left is dropped with the pipe.
        if freed != DETACHED {
            self.limit = freed + total;
        }
        self.at.end() != self.limit
    }

    /// Takes back the newest value that is not flushed, a part or a whole message.
    ///
    /// Taking back the last part of a message makes the parts before it incomplete again.
    pub fn unwrite(&mut self) -> Option<T> {
        if self.at.position() == self.flushed {
            return None;
        }
        if self.at.slot == 0 {
            self.at.retreat();
            if self.at.block != self.first {
                // Relaxed: nobody gets here before the first block is published. It was marked
                // full when it was left.
                self.at.block.word().store(self.at.start, Ordering::Relaxed);
            }
        }
        self.at.slot -= 1;
        // SAFETY: the value was written and not published: nobody else knows it.
        let value = unsafe { self.at.block.take(self.at.slot) };
        self.parts.unwrite(self.at.position());
        Some(value)
    }

    /// Makes every complete message visible, all at once, and says whether the reader sleeps. If
    /// there is nothing to show, nothing is owed.
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
    /// The reader gets past the first block only once that is published to its end. So the word
    /// of the last block is written first and that of the first last; those in between were
    /// marked full when they were left.
    #[inline(always)]
    fn publish(&mut self, to: PipePosition<T>) -> Peer {
        if to.position() == self.flushed {
            return Peer::Awake;
        }
        self.flushed = to.position();
        if to.block == self.first {
            // PAIRS(pipe): release here, acquire in `Reader::look`.
            self.first.word().store(to.position(), Ordering::Release);
        } else {
            // Relaxed: nobody gets here before the first block is published.
            to.block.word().store(to.position(), Ordering::Relaxed);
            // PAIRS(pipe): release here, acquire in `Reader::look`.
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

    /// Closes the pipe, as dropping the end does, and says whether the reader sleeps.
    pub fn close(mut self) -> Peer {
        self.finish()
    }

    /// Closes the pipe, once.
    pub(super) fn finish(&mut self) -> Peer {
        if self.shared.is_closed() {
            return Peer::Awake;
        }
        let flushed = self.flush();
        while let Some(part) = self.unwrite() {
            drop(part);
        }
        self.shared.close();
        if flushed == Peer::Asleep { flushed } else { self.peer() }
    }

    /// Whether the reader is gone: nobody will read what is written from now on.
    #[inline(always)]
    pub fn is_closed(&self) -> bool {
        self.shared.park_flag.is_gone()
    }

    /// How many messages fit at any time; none if the pipe is unbounded.
    pub fn capacity(&self) -> Option<usize> {
        match self.shared.room {
            PipeLayout::Ring { capacity, .. } => Some(capacity as usize),
            PipeLayout::Chain { .. } => None,
        }
    }

    /// Sleeps until the reader gives back room or leaves, at most `limit`. Wakes early now and
    /// then.
    pub(super) fn sleep_until_room(&mut self, limit: Duration) {
        let PipeLayout::Ring { total, .. } = self.shared.room else { return };
        let freed = &self.shared.freed;
        let wakes = freed.mark(&mut self.sleeper);
        if freed.get() == self.limit - total {
            futex::wait(freed.word(), wakes, limit);
        }
    }

    /// The writer has found room without sleeping.
    pub(super) fn found_room(&mut self) {
        self.shared.freed.found(&mut self.sleeper);
    }
}

impl<T> Writer<T, Unbounded> {
    /// Appends a message, or the last part of one. Nobody sees it before it is flushed.
    #[inline(always)]
    pub fn write(&mut self, value: T) {
        let written = self.try_write(value);
        debug_assert!(written.is_ok(), "an unbounded pipe is never full");
    }

    /// Appends a part of a message that is not complete yet: nobody sees it before a
    /// [`write`](Self::write) has appended the last part and was flushed.
    pub fn write_part(&mut self, value: T) {
        let written = self.try_write_part(value);
        debug_assert!(written.is_ok(), "an unbounded pipe is never full");
    }
}

/// The chunk behind `chunk`: in a circle itself, in a chain the one that was there before an
/// `unwrite`, or an empty one.
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
        // Whom it would wake is not known here.
        let _ = self.finish();
        // SAFETY: this is the writer's last act.
        unsafe { self.shared.stop(WRITER, self.at) };
        self.shared.freed.forget(&mut self.sleeper);
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
