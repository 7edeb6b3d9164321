//! The consumer: a reading end of a ring.

use crate::cursor::{Cursor, DETACHED, SleepWord, sleep_on_any};
use crate::gating::{GatingCursors, ParkMark};
use crate::producer_lane::{PARK_TIME_MAX, RingBuffer};
use crate::reader_throttle::{ReaderThrottle, pause};
use lanecast_base::{WaitStep, WaitStrategy, Waiter};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Values handled between two releases, while more are available.
const RELEASE_EVERY: usize = 32;

/// A reader of every value of a ring, in place.
///
/// Unread values gate the producer. A drop detaches the consumer: it gates no other end.
#[derive(Debug)]
pub struct Consumer<T> {
    pub(crate) ring: Arc<RingBuffer<T>>,
    /// Position of the next value.
    pub(crate) at: u64,
    /// Known limit of reading.
    pub(crate) limit: u64,
    released: u64,
    pub(crate) head: Arc<Cursor>,
    gates: GatingCursors,
    waiter: Waiter,
    throttle: ReaderThrottle,
    /// The position at the last [`wait`](Self::wait).
    waited_at: u64,
    /// Time without values after which those that a stride holds back are read.
    pull_after: Option<Duration>,
    /// Time since which the ring has been empty.
    empty_since: Option<Instant>,
    /// Park flag set for a sleep.
    mark: Option<ParkMark>,
}

impl<T> Consumer<T> {
    pub(crate) fn new(
        ring: Arc<RingBuffer<T>>,
        head: Arc<Cursor>,
        gates: GatingCursors,
        pull_after: Option<Duration>,
        strategy: WaitStrategy,
    ) -> Self {
        let throttle = ReaderThrottle::new(ring.slots.far());
        Self {
            ring,
            at: 0,
            limit: 0,
            released: 0,
            head,
            gates,
            waiter: Waiter::new(strategy),
            throttle,
            waited_at: 0,
            pull_after,
            empty_since: None,
            mark: None,
        }
    }

    /// Passes at most `max` available values to `handle`, as at most two slices; returns the number
    /// of values. Never blocks. The values are released when the last call of `handle` has
    /// returned.
    ///
    /// A `handle` that panics has consumed its slice.
    #[inline(always)]
    pub fn drain(&mut self, max: usize, mut handle: impl FnMut(&[T])) -> usize {
        let count = self.available(max);
        self.each_run(count, |consumer, at, run| {
            // SAFETY: the run lies between the head and the limit: the producer does not write
            // there.
            handle(unsafe { consumer.ring.slots.read(at, run) });
        })
    }

    /// Number of values available now, at most `max`.
    #[inline(always)]
    pub(crate) fn available(&mut self, max: usize) -> usize {
        if self.at == self.limit {
            self.poll_tail();
        }
        (self.limit - self.at).min(max as u64) as usize
    }

    /// Calls `handle` for `count` values, run by run, and releases them.
    #[inline(always)]
    pub(crate) fn each_run(
        &mut self,
        count: usize,
        mut handle: impl FnMut(&Self, u64, usize),
    ) -> usize {
        let mut left = count;
        while left > 0 {
            let (at, run) = (self.at, self.ring.slots.run(self.at, left as u64));
            self.at += run as u64;
            left -= run;
            handle(self, at, run);
        }
        // Even without values: the last call can have ended by a panic of `handle`, unreleased.
        self.release();
        count
    }

    /// Passes the available values to `handle`, a few at a time, with a flag that marks the last
    /// ones, until `handle` has handled fewer than it was given. Releases handled values on the way
    /// and returns their number.
    pub(crate) fn drain_while(&mut self, mut handle: impl FnMut(&[T], bool) -> usize) -> usize {
        let count = self.available(usize::MAX);
        let mut done = 0;
        while done < count {
            let run = self.ring.slots.run(self.at, (count - done).min(RELEASE_EVERY) as u64);
            // SAFETY: the run lies between the head and the limit: the producer does not write
            // there.
            let values = unsafe { self.ring.slots.read(self.at, run) };
            let handled = handle(values, done + run == count);
            self.at += handled as u64;
            done += handled;
            self.release();
            if handled < run {
                break;
            }
        }
        done
    }

    /// Whether a value is available. Releases only every `release_every` values, and once the ring
    /// is empty.
    #[inline(always)]
    pub(crate) fn has_one(&mut self, release_every: u64) -> bool {
        if self.at != self.limit {
            if self.at - self.released >= release_every {
                self.release();
            }
            return true;
        }
        self.release();
        self.available(1) == 1
    }

    /// Releases the values read so far to the ends that this consumer gates.
    #[inline(always)]
    pub(crate) fn release(&mut self) {
        if self.released != self.at {
            self.released = self.at;
            self.head.publish(self.at);
        }
    }

    /// Reads the gating cursors.
    #[inline(always)]
    fn poll_tail(&mut self) {
        // The producer's tail is always among them.
        self.limit = self.gates.slowest().map_or(self.at, |slowest| slowest.max(self.at));
        if self.limit == self.at && self.pull_after.is_some() {
            self.pull();
        }
    }

    /// Makes values available that a stride has held back for too long.
    #[cold]
    fn pull(&mut self) {
        if !self.may_pull() {
            return;
        }
        let since = *self.empty_since.get_or_insert_with(Instant::now);
        if Some(since.elapsed()) >= self.pull_after {
            self.limit = self.ring.written().max(self.at);
            self.empty_since = None;
        }
    }

    /// Whether values that a stride holds back are this consumer's to read: it follows no other, or
    /// all others have left.
    fn may_pull(&self) -> bool {
        self.pull_after.is_some() && self.gates.is_only(&self.ring.tail)
    }

    /// Waits by the ring's strategy after a poll with `work` values; returns at once if there were
    /// any, or if values were read since the last call. Returns after at most 100 ms.
    #[inline(always)]
    pub fn wait(&mut self, work: usize) {
        self.wait_unless(work, || false);
    }

    /// As [`wait`](Self::wait), but does not sleep if `stop` holds.
    #[inline(always)]
    pub(crate) fn wait_unless(&mut self, work: usize, stop: impl Fn() -> bool) {
        // Not only `work`: callers that take single values often report an empty poll only.
        let read = (self.at - self.waited_at) as usize;
        self.waited_at = self.at;
        if read > 0 {
            self.waiter.found(read);
            self.found();
            if !self.has_more() {
                let pauses = self.throttle.caught_up(read);
                pause(pauses, self.waiter.strategy());
            }
        } else if work == 0 {
            self.throttle.empty();
            self.wait_once(stop);
        }
    }

    /// Whether more values are known to be available.
    #[inline(always)]
    pub(crate) const fn has_more(&self) -> bool {
        self.at != self.limit
    }

    /// Notes that there were values.
    #[inline(always)]
    pub(crate) fn found(&mut self) {
        self.empty_since = None;
        self.gates.found();
    }

    #[inline(never)]
    fn wait_once(&mut self, stop: impl Fn() -> bool) {
        match self.waiter.next_step() {
            WaitStep::Spin(pauses) => lanecast_base::spin(pauses),
            WaitStep::Yield => std::thread::yield_now(),
            WaitStep::Park => {
                if self.mark() && !stop() {
                    sleep_on_any(self.word(), PARK_TIME_MAX);
                }
            }
        }
    }

    /// Sets a park flag unless the stream has ended; returns whether there is nothing to read.
    pub(crate) fn mark(&mut self) -> bool {
        self.mark = None;
        if self.is_closed() {
            return true;
        }
        self.mark = self.gates.mark(self.at);
        // Values that a stride holds back are read in time only by ends that may pull them; the
        // others must not go beyond the ends that they follow, however much is written.
        let held_back = self.may_pull() && self.ring.written() > self.at;
        let may_come = held_back || self.pull_after.is_some() && self.gates.has_departed();
        self.mark.is_some() && !may_come && !self.is_closed()
    }

    /// The word to sleep on after [`mark`](Self::mark); `None` if the stream has ended.
    pub(crate) fn word(&self) -> Option<SleepWord<'_>> {
        self.mark.map(|mark| self.gates.word(mark))
    }

    /// Whether the producer is gone and all values are read. If so, everything that the producer's
    /// thread did before is visible.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.ring.ends_at(self.at)
    }

    /// Number of values read: the sequence of the next one.
    pub const fn position(&self) -> u64 {
        self.at
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.head.publish(DETACHED);
    }
}

impl<T> AsRef<Self> for Consumer<T> {
    fn as_ref(&self) -> &Self {
        self
    }
}
