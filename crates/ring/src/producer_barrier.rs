//! Producer barrier: the position up to which a producer may write.

use crate::cursor::sleep_on_any;
use crate::gating::GatingCursors;
use crate::producer_lane::{PARK_TIME_MAX, RingBuffer};
use crate::reader_throttle::pause;
use lanecast_base::{WaitStep, WaitStrategy, Waiter};
use std::sync::Arc;

/// Polls for more space after a wait that has found little.
const POLLS_FOR_MORE: u32 = 4;
/// Pauses before each of these polls.
const PAUSES_FOR_MORE: u32 = 128;

/// Position of the slowest consumer as last read; read again only when the producer reaches it.
#[derive(Debug)]
pub(crate) struct ProducerBarrier<T> {
    pub(crate) ring: Arc<RingBuffer<T>>,
    gates: GatingCursors,
    waiter: Waiter,
    /// Known limit of writing; 0 once all consumers are gone or have stopped the producer.
    pub(crate) limit: u64,
    pub(crate) is_closed: bool,
}

impl<T> ProducerBarrier<T> {
    pub(crate) fn new(
        ring: Arc<RingBuffer<T>>,
        gates: GatingCursors,
        strategy: WaitStrategy,
    ) -> Self {
        let limit = ring.slots.capacity();
        Self { ring, gates, waiter: Waiter::new(strategy), limit, is_closed: false }
    }

    /// Position up to which a producer at `at` may write before it asks again; `at` without space.
    /// Prefetches the cache lines that consumers read a lap ago, so that writes do not wait for
    /// each.
    #[cold]
    #[inline(never)]
    pub(crate) fn next(&mut self, at: u64) -> u64 {
        if at >= self.limit {
            self.update(at);
        }
        self.ring.slots.fetch_ahead(at, self.limit)
    }

    /// Waits for space, or until all consumers are gone; returns as [`next`](Self::next).
    #[cold]
    #[inline(never)]
    pub(crate) fn wait(&mut self, at: u64) -> u64 {
        while !self.update(at) && !self.is_closed {
            match self.waiter.next_step() {
                WaitStep::Spin(pauses) => lanecast_base::spin(pauses),
                WaitStep::Yield => std::thread::yield_now(),
                WaitStep::Park => {
                    let slowest = self.limit - self.ring.slots.capacity();
                    let mark = self.gates.mark(slowest);
                    if !self.ring.is_producer_stopped() {
                        sleep_on_any(mark.map(|mark| self.gates.word(mark)), PARK_TIME_MAX);
                    }
                }
            }
        }
        self.waiter.reset();
        self.gates.found();
        self.wait_for_more(at);
        self.ring.slots.fetch_ahead(at, self.limit)
    }

    /// Gives slow consumers some microseconds undisturbed. Little space means that they are the
    /// slower side, and a poll for each value would take their cache lines away every time.
    fn wait_for_more(&mut self, at: u64) {
        let enough = at + self.ring.slots.capacity() / 8;
        let mut polls = 0;
        while self.limit < enough && polls < POLLS_FOR_MORE && !self.is_closed {
            pause(PAUSES_FOR_MORE, self.waiter.strategy());
            self.update(at);
            polls += 1;
        }
    }

    /// Reads the consumers' positions; returns whether there is space for a value at `at`.
    #[cold]
    #[inline(never)]
    pub(crate) fn update(&mut self, at: u64) -> bool {
        let slowest = self.gates.slowest().filter(|_| !self.ring.is_producer_stopped());
        self.is_closed = slowest.is_none();
        self.limit = slowest.map_or(0, |slowest| slowest + self.ring.slots.capacity());
        at < self.limit
    }
}
