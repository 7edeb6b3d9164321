//! The reader: the reading end of a pipe.

use super::block::Block;
use super::pipe_position::PipePosition;
use super::shared::{PipeLayout, READER, Shared};
use crate::cursor::DETACHED;
use crate::park_flag::{Fence, Sleeper};
use lanecast_base::sync::{Arc, Ordering};

/// The reading end of a pipe.
///
/// A drop drops all visible values and closes the pipe.
pub struct Reader<T> {
    at: PipePosition<T>,
    /// Number of slots of this block known to be published.
    seen: usize,
    /// Whether its park flag is set and no value has been found since.
    is_asleep: bool,
    /// Whether the writer is sure to see the park flag.
    is_covered: bool,
    sleeper: Sleeper,
    /// Position up to which blocks of a ring are released to the writer.
    released: u64,
    /// Positions between two releases; never reached in a chain.
    release: u64,
    shared: Arc<Shared<T>>,
}

// SAFETY: the reader takes values that another thread has passed on.
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
            is_covered: true,
            sleeper: Sleeper::default(),
            released: 0,
            release,
            shared,
        }
    }

    /// The next value, if one is available. Does not set the park flag otherwise.
    #[inline(always)]
    pub fn try_read(&mut self) -> Option<T> {
        if self.at.slot == self.seen && !self.poll_block() {
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

    /// Passes at most `limit` available values to `sink`; returns their number. Does not set the
    /// park flag if there are none.
    #[inline]
    pub fn drain(&mut self, limit: usize, mut sink: impl FnMut(T)) -> usize {
        let mut left = limit;
        while left > 0 && (self.at.slot != self.seen || self.poll_block()) {
            let run = (self.seen - self.at.slot).min(left);
            for _ in 0..run {
                sink(self.take());
            }
            left -= run;
        }
        limit - left
    }

    /// Polls the block's word for further values; at the end of a block, that of the next one.
    #[inline]
    fn poll_block(&mut self) -> bool {
        if self.at.is_behind() && !self.leave() {
            return false;
        }
        // PAIRS(pipe): acquire here, release in `Writer::publish`.
        let published = self.at.block.word().load(Ordering::Acquire);
        // The word of an earlier lap is not past the block's start.
        self.seen = published.saturating_sub(self.at.start) as usize;
        debug_assert!(self.seen <= Block::<T>::VALUES, "published within the block");
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

    /// Leaves an empty block for the next one, if that exists.
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

    /// Releases all empty blocks of a ring.
    #[cold]
    fn release(&mut self) {
        self.released = self.at.start;
        if self.release != u64::MAX {
            self.shared.freed.publish(self.released);
        }
    }

    /// Whether a value is available. If not, this sets the reader's park flag in the same step: the
    /// writer's next flush returns [`Asleep`](super::Peer::Asleep), once, and the writer must then
    /// signal. A caller that polls again without waiting may get that signal late. No signal comes
    /// once the pipe [is closed](Self::is_closed): check that before waiting. It may be missing if
    /// the reader [is not covered](Self::is_covered).
    #[inline]
    pub fn check(&mut self) -> bool {
        if self.at.slot != self.seen {
            return true;
        }
        if self.poll_block() {
            return true;
        }
        let is_covered = self.announce().pass();
        self.note_coverage(is_covered);
        self.settle()
    }

    /// Whether the writer is sure to signal after the last failed [`check`](Self::check). If not,
    /// since the system refuses `membarrier` although it granted it before, check again after a
    /// millisecond.
    pub const fn is_covered(&self) -> bool {
        self.is_covered
    }

    /// Notes what the fence after [`announce`](Self::announce) returned.
    pub(super) fn note_coverage(&mut self, is_covered: bool) {
        self.is_covered = is_covered;
        if !is_covered {
            self.shared.park_flag.forget(&mut self.sleeper);
        }
    }

    /// Sets the park flag of a reader without values: the caller must pass the fence, then call
    /// [`note_coverage`](Self::note_coverage) and [`settle`](Self::settle).
    #[must_use]
    pub(super) fn announce(&mut self) -> Fence {
        self.shared.park_flag.announce(&mut self.sleeper)
    }

    /// Polls once more; returns whether a value is available after all.
    pub(super) fn settle(&mut self) -> bool {
        self.is_asleep = false;
        // If the writer has claimed the wake-up, its signal will come: the reader counts as asleep.
        let is_found = self.poll_block() && self.shared.park_flag.unmark();
        self.is_asleep = !is_found;
        is_found
    }

    /// Clears the park flag after a value came before the signal.
    #[cold]
    fn wake(&mut self) {
        self.is_asleep = false;
        self.shared.park_flag.unmark();
    }

    /// Reads the next value. If there is none, sets the park flag in the same step, as
    /// [`check`](Self::check) does.
    #[inline(always)]
    pub fn read(&mut self) -> Option<T> {
        if self.check() { Some(self.take()) } else { None }
    }

    /// Whether the writer is gone and all values are read.
    #[inline]
    pub fn is_closed(&mut self) -> bool {
        self.at.slot == self.seen && self.shared.is_closed() && !self.poll_block()
    }

    /// Makes the writer fence from the start, as for a reader that sleeps often.
    #[cfg(all(test, loom))]
    pub(super) fn fence_always(&mut self) {
        self.shared.park_flag.fence_always(&mut self.sleeper);
    }

    /// Number of values read.
    #[inline(always)]
    pub(super) const fn position(&self) -> u64 {
        self.at.position()
    }
}

impl<T> Drop for Reader<T> {
    fn drop(&mut self) {
        let left = Leaving(self);
        while let Some(value) = left.0.try_read() {
            drop(value);
        }
    }
}

/// A reader being dropped, which tells the writer even if the drop of a value panics: the last end
/// drops the remaining values.
struct Leaving<'a, T>(&'a mut Reader<T>);

impl<T> Drop for Leaving<'_, T> {
    fn drop(&mut self) {
        let Reader { shared, at, .. } = &*self.0;
        shared.park_flag.leave();
        shared.freed.publish(DETACHED);
        // SAFETY: only the drop of `shared` follows.
        unsafe { shared.stop(READER, *at) };
    }
}

impl<T> core::fmt::Debug for Reader<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Reader").field("read", &self.at.position()).finish_non_exhaustive()
    }
}
