//! The reading end.

use super::block::Block;
use super::pipe_position::PipePosition;
use super::shared::{PipeLayout, READER, Shared};
use crate::cursor::DETACHED;
use crate::park_flag::{Fence, Sleeper};
use lanecast_base::sync::{Arc, Ordering};

/// The reading end of a pipe.
///
/// Dropping it drops everything that is visible and closes the pipe.
pub struct Reader<T> {
    at: PipePosition<T>,
    /// The slots of this block that are known to be published.
    seen: usize,
    /// Whether it has marked itself asleep and found nothing since.
    is_asleep: bool,
    sleeper: Sleeper,
    /// Everything before was given back to the writer of a circle.
    released: u64,
    /// Room is given back once it is this much; never in a chain.
    release: u64,
    shared: Arc<Shared<T>>,
}

// SAFETY: the end takes values that another thread has handed over.
unsafe impl<T: Send> Send for Reader<T> {}

impl<T> Reader<T> {
    pub(super) fn new(start: PipePosition<T>, shared: Arc<Shared<T>>) -> Self {
        let release = match shared.room {
            PipeLayout::Ring { release, .. } => release,
            PipeLayout::Chain { .. } => u64::MAX,
        };
        Self {
            at: start,
            seen: 0,
            is_asleep: false,
            sleeper: Sleeper::default(),
            released: 0,
            release,
            shared,
        }
    }

    /// The next value, if one is there now. Only looks: the writer is not told if there is none.
    #[inline(always)]
    pub fn try_read(&mut self) -> Option<T> {
        if self.at.slot == self.seen && !self.look() {
            return None;
        }
        Some(self.take())
    }

    #[inline(always)]
    fn take(&mut self) -> T {
        // SAFETY: the slot was published, and is read once.
        let value = unsafe { self.at.block.take(self.at.slot) };
        self.at.slot += 1;
        value
    }

    /// Hands at most `limit` of the values that are there now to `sink`, and says how many. Only
    /// looks: the writer is not told if there are none.
    #[inline]
    pub fn drain(&mut self, limit: usize, mut sink: impl FnMut(T)) -> usize {
        let mut left = limit;
        while left > 0 && (self.at.slot != self.seen || self.look()) {
            let run = (self.seen - self.at.slot).min(left);
            for _ in 0..run {
                sink(self.take());
            }
            left -= run;
        }
        limit - left
    }

    /// Looks whether anything is published behind what was seen; at the end of the block, in
    /// the next one.
    #[inline]
    fn look(&mut self) -> bool {
        if self.at.is_behind() && !self.leave() {
            return false;
        }
        // PAIRS(pipe): acquire here, release in `Writer::publish`.
        let published = self.at.block.word().load(Ordering::Acquire);
        // The word of an earlier lap is not past the block's start.
        self.seen = published.saturating_sub(self.at.start) as usize;
        debug_assert!(self.seen <= Block::<T>::VALUES, "nobody publishes behind the block");
        if self.seen > self.at.slot {
            if self.is_asleep {
                self.wake();
            } else {
                self.shared.park_flag.found(&mut self.sleeper);
            }
            return true;
        }
        self.seen = self.at.slot;
        if self.released != self.at.start {
            self.release();
        }
        false
    }

    /// Leaves an emptied block for the next one, if there is one yet.
    #[inline]
    fn leave(&mut self) -> bool {
        let shared = &self.shared;
        let is_next = self.at.advance(|chunk| match shared.room {
            PipeLayout::Ring { .. } => Some(chunk),
            PipeLayout::Chain { .. } => chunk.next().inspect(|_| shared.give_chunk(chunk)),
        });
        if !is_next {
            return false;
        }
        self.seen = 0;
        if self.at.start - self.released >= self.release {
            self.release();
        }
        true
    }

    /// Gives all emptied blocks of a circle back.
    #[cold]
    fn release(&mut self) {
        self.released = self.at.start;
        if self.release != u64::MAX {
            self.shared.freed.publish(self.released);
        }
    }

    /// Whether there is something to read. If not, the reader is marked asleep in the same step:
    /// the writer's next flush says [`Asleep`](super::Peer::Asleep), once, and so owes it a
    /// signal. Who calls this again without waiting for the signal may get it late. Nobody
    /// signals any more when the pipe [is closed](Self::is_closed): ask that before waiting.
    #[inline]
    pub fn check(&mut self) -> bool {
        if self.at.slot != self.seen {
            return true;
        }
        if self.look() {
            return true;
        }
        self.announce().pass();
        self.settle()
    }

    /// The mark of a reader that found nothing: it must pass the fence, and then
    /// [`settle`](Self::settle).
    #[must_use]
    pub(super) fn announce(&mut self) -> Fence {
        self.shared.park_flag.announce(&mut self.sleeper)
    }

    /// Looks once more; whether there is something to read after all.
    pub(super) fn settle(&mut self) -> bool {
        self.is_asleep = false;
        // If the writer was faster its signal is on the way: then the reader counts as asleep.
        let is_found = self.look() && self.shared.park_flag.unmark();
        self.is_asleep = !is_found;
        is_found
    }

    /// Takes the mark back, if it is still there: something came before the signal did.
    #[cold]
    fn wake(&mut self) {
        self.is_asleep = false;
        self.shared.park_flag.unmark();
    }

    /// Reads the next value. If there is none, the reader is marked asleep in the same step, as by
    /// [`check`](Self::check).
    #[inline(always)]
    pub fn read(&mut self) -> Option<T> {
        if self.check() { Some(self.take()) } else { None }
    }

    /// Whether the writer is gone and everything was read.
    #[inline]
    pub fn is_closed(&mut self) -> bool {
        self.at.slot == self.seen && self.shared.is_closed() && !self.look()
    }

    /// Makes the writer fence from the start, as for a reader that has slept often.
    #[cfg(all(test, loom))]
    pub(super) fn fence_always(&mut self) {
        self.shared.park_flag.fence_always(&mut self.sleeper);
    }

    /// How many values were read.
    #[inline(always)]
    pub(super) const fn position(&self) -> u64 {
        self.at.position()
    }
}

impl<T> Drop for Reader<T> {
    fn drop(&mut self) {
        while let Some(value) = self.try_read() {
            drop(value);
        }
        self.shared.park_flag.leave();
        self.shared.freed.publish(DETACHED);
        // SAFETY: this is the reader's last act.
        unsafe { self.shared.stop(READER, self.at) };
    }
}

impl<T> core::fmt::Debug for Reader<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Reader").field("read", &self.at.position()).finish_non_exhaustive()
    }
}
