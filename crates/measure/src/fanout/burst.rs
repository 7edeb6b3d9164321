//! Size of bursts, and flow control of publishers by deliveries in flight.

use super::load::Wanted;
use lanecast_base::sync::{AtomicBool, AtomicU64, Ordering};
use serde::Serialize;
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

/// Time without deliveries after which the rest counts as lost.
const PATIENCE: Duration = Duration::from_secs(3);
/// Interval of polling.
const NAP: Duration = Duration::from_micros(50);

/// Deliveries expected and arrived, shared by publishers and subscribers.
#[derive(Debug)]
pub(super) struct DeliveryCount {
    owed: AtomicU64,
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
        let (owed, arrived) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { owed, arrived, is_over: AtomicBool::new(false), window }
    }

    /// Adds `count` expected deliveries.
    #[inline]
    pub(super) fn expect(&self, count: u64) {
        self.owed.fetch_add(count, Ordering::Relaxed);
    }

    /// Adds `count` arrived deliveries.
    #[inline]
    pub(super) fn arrive(&self, count: u64) {
        self.arrived.fetch_add(count, Ordering::Relaxed);
    }

    /// Deliveries in flight.
    #[inline]
    pub(super) fn in_flight(&self) -> u64 {
        let owed = self.owed.load(Ordering::Relaxed);
        owed.saturating_sub(self.arrived.load(Ordering::Relaxed))
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

    pub(super) fn owed(&self) -> u64 {
        self.owed.load(Ordering::Relaxed)
    }

    pub(super) fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }
}
