//! 63 signals from any threads to one, in one word.

use super::interface::{Deadline, NoSuchSignal, Signal, Signals, wake_up};
use super::numbers::SignalSet;
use super::numbers::place;
use lanecast_base::CachePadded;
use lanecast_base::sync::{Arc, AtomicU32, AtomicU64, Ordering, fence};
use lanecast_os::futex;
use std::time::Duration;

/// The waiter sleeps, or is about to; the lower bits are the signals.
const WAITING: u64 = 1 << 63;

#[derive(Debug, Default)]
struct Shared {
    word: AtomicU64,
    /// Number of wake-ups: the word that the waiter sleeps on, since a futex has 32 bits.
    wakes: AtomicU32,
}

/// The waiting half of 63 signals: many senders, one waiter, one wake-up for any number of
/// signals.
///
/// ```
/// use lanecast_ring::signal::{PollSet, Signal, Signals};
/// let mut waiter = PollSet::new();
/// waiter.bind(62)?.signal();
/// assert_eq!(waiter.check().iter().next(), Some(62));
/// assert!(waiter.bind(63).is_err());
/// # Ok::<(), lanecast_ring::signal::NoSuchSignal>(())
/// ```
#[derive(Debug, Default)]
pub struct PollSet {
    shared: Arc<CachePadded<Shared>>,
}

/// The sending half of a [`PollSet`], bound to one signal.
#[derive(Clone, Debug)]
pub struct PollSetSignal {
    shared: Arc<CachePadded<Shared>>,
    bit: u64,
}

impl PollSet {
    /// A waiter without signals.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes all pending signals.
    #[inline]
    fn take(&self) -> u64 {
        // Read first: a spinning waiter must not write.
        if self.shared.word.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        // PAIRS(pollset): acquire here, release in `signal`.
        self.shared.word.swap(0, Ordering::Acquire) & !WAITING
    }

    /// Sleeps until a signal has come or the time is up.
    #[cold]
    fn sleep(&self, deadline: Deadline) {
        let left = deadline.left();
        let wakes = self.shared.wakes.load(Ordering::Relaxed);
        // PAIRS(pollset-sleep): release here, acquire in `wake`: the wake-up of this sleep is
        // counted after its start, so the count above does not include it.
        let (success, failure) = (Ordering::Release, Ordering::Relaxed);
        if self.shared.word.compare_exchange(0, WAITING, success, failure).is_ok() {
            futex::wait_private(&self.shared.wakes, wakes, left);
        }
    }
}

impl Signals for PollSet {
    type Signal = PollSetSignal;
    const COUNT: usize = 63;

    fn bind(&self, number: usize) -> Result<PollSetSignal, NoSuchSignal> {
        NoSuchSignal::check(number, Self::COUNT)?;
        let (_, bit) = place(number);
        Ok(PollSetSignal { shared: Arc::clone(&self.shared), bit })
    }

    #[inline]
    fn check(&mut self) -> SignalSet {
        SignalSet::of_word(self.take())
    }

    fn poll(&mut self, limit: Duration) -> SignalSet {
        let deadline = Deadline::after(limit);
        loop {
            let taken = self.take();
            if taken != 0 || deadline.is_over() {
                return SignalSet::of_word(taken);
            }
            self.sleep(deadline);
        }
    }
}

impl Signal for PollSetSignal {
    #[inline]
    fn signal(&self) {
        // PAIRS(pollset): release here, acquire in `take`.
        let before = self.shared.word.fetch_or(self.bit, Ordering::Release);
        // Only the first signal of a sleep finds `WAITING` alone.
        if before == WAITING {
            self.wake();
        }
    }
}

impl PollSetSignal {
    #[cold]
    fn wake(&self) {
        // PAIRS(pollset-sleep): acquire here, release in `sleep`.
        fence(Ordering::Acquire);
        self.shared.wakes.fetch_add(1, Ordering::Relaxed);
        wake_up(|| futex::wake_private(&self.shared.wakes, 1));
    }
}
