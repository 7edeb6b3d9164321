//! Size of bursts, and flow control of publishers by deliveries in flight.

use super::load::Wanted;
use lanecast_base::sync::{AtomicBool, AtomicU64, Ordering};
use serde::Serialize;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Bursts of messages.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Bursts {
    /// Number of publishers that send at the same time.
    pub publishers: usize,
    /// Number of bursts. Each begins when the one before has arrived.
    pub count: usize,
    /// Messages of a burst, all publishers' together.
    pub messages: u64,
}

impl Bursts {
    /// Messages of a publisher in a burst.
    pub(super) fn share(&self, number: usize) -> u64 {
        let publishers = self.publishers as u64;
        self.messages / publishers + u64::from((number as u64) < self.messages % publishers)
    }

    /// Starts each burst after the one before has arrived; returns their total time.
    pub(super) fn time(&self, deliveries: &DeliveryCount, barrier: &Barrier) -> Duration {
        let mut took = Duration::ZERO;
        for _ in 0..self.count {
            barrier.wait();
            // All are ready, and none begins before the clock: it may take this thread a while to
            // go on where CPUs are few.
            let start = Instant::now();
            barrier.wait();
            // All is expected when the publishers are through.
            barrier.wait();
            if !deliveries.wait(|deliveries| deliveries.in_flight() == 0) {
                deliveries.end();
            }
            took += start.elapsed();
        }
        took
    }
}

/// Time without deliveries after which the rest counts as lost.
const PATIENCE: Duration = Duration::from_secs(3);
/// Interval of polling.
const NAP: Duration = Duration::from_micros(50);

/// Deliveries expected and arrived, shared by publishers and subscribers.
#[derive(Debug)]
pub(super) struct DeliveryCount {
    expected: AtomicU64,
    arrived: AtomicU64,
    is_over: AtomicBool,
    /// Most deliveries in flight.
    window: u64,
}

impl DeliveryCount {
    pub(super) fn new(wanted: Wanted) -> Self {
        let window = match wanted {
            Wanted::All => 200_000,
            Wanted::Quarter => 20_000,
        };
        let (expected, arrived) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { expected, arrived, is_over: AtomicBool::new(false), window }
    }

    /// Adds `count` expected deliveries.
    #[inline]
    pub(super) fn expect(&self, count: u64) {
        self.expected.fetch_add(count, Ordering::Relaxed);
    }

    /// Adds `count` arrived deliveries.
    #[inline]
    pub(super) fn arrive(&self, count: u64) {
        self.arrived.fetch_add(count, Ordering::Relaxed);
    }

    /// Deliveries in flight.
    #[inline]
    pub(super) fn in_flight(&self) -> u64 {
        let expected = self.expected.load(Ordering::Relaxed);
        expected.saturating_sub(self.arrived.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.in_flight() > self.window
    }

    /// Ends the experiment for all threads.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Waits until `done`; false if no delivery arrives for [`PATIENCE`].
    pub(super) fn wait(&self, done: impl Fn(&Self) -> bool) -> bool {
        let (mut seen, mut since) = (self.arrived.load(Ordering::Relaxed), Instant::now());
        while !done(self) && !self.is_over() {
            std::thread::sleep(NAP);
            let now = self.arrived.load(Ordering::Relaxed);
            if now != seen {
                (seen, since) = (now, Instant::now());
            } else if since.elapsed() > PATIENCE {
                return false;
            }
        }
        true
    }

    pub(super) fn expected(&self) -> u64 {
        self.expected.load(Ordering::Relaxed)
    }

    pub(super) fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }
}
