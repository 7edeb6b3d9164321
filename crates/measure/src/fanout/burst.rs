//! How much is published, and how far it may run ahead.

use super::load::Wanted;
use lanecast_base::sync::{AtomicBool, AtomicU64, Ordering};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Bursts of messages.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Bursts {
    /// How many publishers send them at the same time.
    pub publishers: usize,
    /// How many bursts, one after the other: each begins when the last has arrived.
    pub count: usize,
    /// Messages of a burst, all publishers' together.
    pub messages: u64,
}

/// When nothing has arrived for so long, nothing more will.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two looks.
const NAP: Duration = Duration::from_micros(50);

/// What is owed to subscribers and what has reached them, as both sides see it.
#[derive(Debug)]
pub(super) struct DeliveryCount {
    owed: AtomicU64,
    arrived: AtomicU64,
    is_over: AtomicBool,
    /// The most that may be on its way.
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

    /// So many deliveries more are to come.
    #[inline]
    pub(super) fn owe(&self, count: u64) {
        self.owed.fetch_add(count, Ordering::Relaxed);
    }

    /// So many have come.
    #[inline]
    pub(super) fn arrive(&self, count: u64) {
        self.arrived.fetch_add(count, Ordering::Relaxed);
    }

    /// What is on its way.
    #[inline]
    pub(super) fn open(&self) -> u64 {
        let owed = self.owed.load(Ordering::Relaxed);
        owed.saturating_sub(self.arrived.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.open() > self.window
    }

    /// Ends the experiment for all threads.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Waits until `done`; whether it came to that before everything stood still.
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
