//! The reading ends of a ring.

use crate::cursor::{Cursor, DETACHED, sleep_on_any};
use crate::gating::{GatingCursors, ParkMark};
use crate::producer_lane::{PARK_TIME_MAX, RingBuffer};
use crate::reader_throttle::{ReaderThrottle, pause};
use lanecast_base::sync::AtomicU32;
use lanecast_base::{WaitStep, WaitStrategy, Waiter};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So many values are handled before they are released, if more are there.
const RELEASE_EVERY: usize = 32;

/// A reader of every value of a ring, in place.
///
/// What it has not read holds the producer back. Dropped, it holds nobody back any more.
#[derive(Debug)]
pub struct Consumer<T> {
    pub(crate) line: Arc<RingBuffer<T>>,
    /// The next value.
    pub(crate) at: u64,
    /// Values may be read up to here, as far as known.
    pub(crate) limit: u64,
    released: u64,
    pub(crate) head: Arc<Cursor>,
    gates: GatingCursors,
    waiter: Waiter,
    throttle: ReaderThrottle,
    /// The position at the last [`wait`](Self::wait).
    waited_at: u64,
    /// After how long without values it looks at those that a stride holds back.
    pull_after: Option<Duration>,
    /// When it ran dry.
    empty_since: Option<Instant>,
    /// What it sleeps on.
    mark: Option<ParkMark>,
}

impl<T> Consumer<T> {
    pub(crate) fn new(
        line: Arc<RingBuffer<T>>,
        head: Arc<Cursor>,
        gates: GatingCursors,
        pull_after: Option<Duration>,
        strategy: WaitStrategy,
    ) -> Self {
        let throttle = ReaderThrottle::new(line.slots.far());
        Self {
            line,
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

    /// Hands over what is there, at most `max` values, as at most two slices; returns how many
    /// values. Never blocks. The values are released when the last call of `handle` has returned.
    ///
    /// A `handle` that panics has consumed its slice.
    #[inline(always)]
    pub fn drain(&mut self, max: usize, mut handle: impl FnMut(&[T])) -> usize {
        let count = self.available(max);
        self.each_run(count, |consumer, at, run| {
            // SAFETY: the run lies between the head and the limit: nobody writes there.
            handle(unsafe { consumer.line.slots.read(at, run) });
        })
    }

    /// How many values may be read now, at most `max`.
    #[inline(always)]
    pub(crate) fn available(&mut self, max: usize) -> usize {
        if self.at == self.limit {
            self.look();
        }
        (self.limit - self.at).min(max as u64) as usize
    }

    /// Passes over `count` values, run by run, and releases them.
    #[inline(always)]
    pub(crate) fn each_run(
        &mut self,
        count: usize,
        mut handle: impl FnMut(&Self, u64, usize),
    ) -> usize {
        let mut left = count;
        while left > 0 {
            let (at, run) = (self.at, self.line.slots.run(self.at, left as u64));
            self.at += run as u64;
            left -= run;
            handle(self, at, run);
        }
        // Also when there is nothing: a `handle` that panicked has released nothing.
        self.release();
        count
    }

    /// Hands over what is there, a few values at a time and the last with a word that it is so,
    /// until `handle` has done fewer than it was given; returns how many are done, and releases
    /// them on the way.
    pub(crate) fn drain_while(&mut self, mut handle: impl FnMut(&[T], bool) -> usize) -> usize {
        let count = self.available(usize::MAX);
        let mut done = 0;
        while done < count {
            let run = self.line.slots.run(self.at, (count - done).min(RELEASE_EVERY) as u64);
            // SAFETY: the run lies between the head and the limit: nobody writes there.
            let values = unsafe { self.line.slots.read(self.at, run) };
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

    /// Whether there is a value now. Releases what was read only every so many values, and when
    /// there is none left.
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

    /// Lets those who wait for this consumer go on.
    #[inline(always)]
    pub(crate) fn release(&mut self) {
        if self.released != self.at {
            self.released = self.at;
            self.head.publish(self.at);
        }
    }

    /// Looks how far those before it are.
    #[inline(always)]
    fn look(&mut self) {
        // The tail, at least, is always there.
        self.limit = self.gates.slowest().map_or(self.at, |slowest| slowest.max(self.at));
        if self.limit == self.at && self.pull_after.is_some() {
            self.pull();
        }
    }

    /// Takes what the producer has written and a stride holds back, if it does so for too long.
    #[cold]
    fn pull(&mut self) {
        let since = *self.empty_since.get_or_insert_with(Instant::now);
        if Some(since.elapsed()) >= self.pull_after {
            self.limit = self.line.written().max(self.at);
            self.empty_since = None;
        }
    }

    /// Waits by the ring's strategy after a round that did `work`: not at all if it did some, or
    /// read values since the last call. Returns after at most 100 ms, values or not.
    #[inline(always)]
    pub fn wait(&mut self, work: usize) {
        self.wait_unless(work, || false);
    }

    /// As [`wait`](Self::wait), but does not sleep if `stop` holds.
    #[inline(always)]
    pub(crate) fn wait_unless(&mut self, work: usize, stop: impl Fn() -> bool) {
        // Not the caller's word: who takes values one by one often says only that it is dry.
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

    /// Whether there is more to read, as far as known.
    #[inline(always)]
    pub(crate) const fn has_more(&self) -> bool {
        self.at != self.limit
    }

    /// There was something to read.
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

    /// Marks this end asleep, if it goes on; whether there is nothing to read.
    pub(crate) fn mark(&mut self) -> bool {
        self.mark = None;
        if self.is_closed() {
            return true;
        }
        self.mark = self.gates.mark(self.at);
        self.mark.is_some() && self.line.written() <= self.at && !self.is_closed()
    }

    /// What to sleep on after [`mark`](Self::mark); `None` if nothing more comes.
    pub(crate) fn word(&self) -> Option<(&AtomicU32, u32)> {
        self.mark.map(|mark| self.gates.word(mark))
    }

    /// Whether the producer is gone and everything is read. Whatever its thread did before that,
    /// here or elsewhere in memory, is seen then.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.line.ends_at(self.at)
    }

    /// How many values it has read: the sequence of the next one.
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
