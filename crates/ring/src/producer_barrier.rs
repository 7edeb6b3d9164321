//! How far a producer may write.

use crate::cursor::sleep_on_any;
use crate::gating::GatingCursors;
use crate::producer_lane::{PARK_TIME_MAX, RingBuffer};
use crate::reader_throttle::pause;
use lanecast_base::{WaitStep, WaitStrategy, Waiter};
use std::sync::Arc;

/// How often a producer that has found little room looks for more before it makes do with it.
const LOOKS_FOR_MORE: u32 = 4;
/// Pauses before each of these looks.
const PAUSES_FOR_MORE: u32 = 128;

/// A producer's knowledge of its consumers, looked up anew only when it is used up.
#[derive(Debug)]
pub(crate) struct ProducerBarrier<T> {
    pub(crate) line: Arc<RingBuffer<T>>,
    gates: GatingCursors,
    waiter: Waiter,
    /// Values may be written up to here, as far as known; 0 once all consumers are gone, or want
    /// nothing more.
    pub(crate) limit: u64,
    pub(crate) is_closed: bool,
}

impl<T> ProducerBarrier<T> {
    pub(crate) fn new(
        line: Arc<RingBuffer<T>>,
        gates: GatingCursors,
        strategy: WaitStrategy,
    ) -> Self {
        let limit = line.slots.capacity();
        Self { line, gates, waiter: Waiter::new(strategy), limit, is_closed: false }
    }

    /// How far a producer at `at` may write before it asks again; no further than `at` if there
    /// is no room. Takes lines back from the consumers that read them a lap ago, so that writing
    /// does not wait for each.
    #[cold]
    #[inline(never)]
    pub(crate) fn next(&mut self, at: u64) -> u64 {
        if at >= self.limit {
            self.look(at);
        }
        self.line.slots.fetch_ahead(at, self.limit)
    }

    /// Looks until there is room, or all consumers are gone; returns as [`next`](Self::next).
    #[cold]
    #[inline(never)]
    pub(crate) fn wait(&mut self, at: u64) -> u64 {
        while !self.look(at) && !self.is_closed {
            match self.waiter.next_step() {
                WaitStep::Spin(pauses) => lanecast_base::spin(pauses),
                WaitStep::Yield => std::thread::yield_now(),
                WaitStep::Park => {
                    let slowest = self.limit - self.line.slots.capacity();
                    let mark = self.gates.mark(slowest);
                    if !self.line.is_producer_stopped() {
                        sleep_on_any(mark.map(|mark| self.gates.word(mark)), PARK_TIME_MAX);
                    }
                }
            }
        }
        self.waiter.reset();
        self.gates.found();
        self.wait_for_more(at);
        self.line.slots.fetch_ahead(at, self.limit)
    }

    /// Little room: consumers are the slower ones. To look again for each value would take their
    /// lines away from them every time, so they get some microseconds to go on undisturbed.
    fn wait_for_more(&mut self, at: u64) {
        let enough = at + self.line.slots.capacity() / 8;
        let mut looks = 0;
        while self.limit < enough && looks < LOOKS_FOR_MORE && !self.is_closed {
            pause(PAUSES_FOR_MORE, self.waiter.strategy());
            self.look(at);
            looks += 1;
        }
    }

    /// Looks how far the consumers are; whether there is room for a value at `at`.
    #[cold]
    #[inline(never)]
    pub(crate) fn look(&mut self, at: u64) -> bool {
        let slowest = self.gates.slowest().filter(|_| !self.line.is_producer_stopped());
        self.is_closed = slowest.is_none();
        self.limit = slowest.map_or(0, |slowest| slowest + self.line.slots.capacity());
        at < self.limit
    }
}
