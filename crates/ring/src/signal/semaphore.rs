//! One signal between two threads: a word, and a futex on it.

use super::interface::{Deadline, NoSuchSignal, Signal, Signals, wake_up};
use super::numbers::SignalSet;
use lanecast_base::CachePadded;
use lanecast_base::sync::{Arc, AtomicU32, Ordering};
use lanecast_os::futex;
use std::time::Duration;

/// No signal, and the waiter is awake.
const QUIET: u32 = 0;
/// A signal has come.
const SIGNALLED: u32 = 1;
/// No signal yet; the waiter sleeps, or is about to.
const WAITING: u32 = 2;

/// The waiting half of one signal: the cheapest way for one thread to wake another.
///
/// ```
/// use lanecast_ring::signal::{Semaphore, Signal, Signals};
/// use std::time::Duration;
/// let mut waiter = Semaphore::new();
/// let signal = waiter.sender();
/// let other = std::thread::spawn(move || signal.signal());
/// assert!(!waiter.poll(Duration::MAX).is_empty());
/// other.join().expect("it does not panic");
/// ```
#[derive(Debug, Default)]
pub struct Semaphore {
    word: Arc<CachePadded<AtomicU32>>,
}

/// The sending half of a [`Semaphore`].
#[derive(Clone, Debug)]
pub struct SemaphoreSignal {
    word: Arc<CachePadded<AtomicU32>>,
}

impl Semaphore {
    /// A waiter without a signal.
    pub fn new() -> Self {
        Self::default()
    }

    /// A sender of the one signal.
    pub fn sender(&self) -> SemaphoreSignal {
        SemaphoreSignal { word: Arc::clone(&self.word) }
    }

    /// Takes the signal; returns whether it was pending.
    #[inline]
    fn take(&self) -> bool {
        // Read first: a spinning waiter must not write.
        self.word.load(Ordering::Relaxed) == SIGNALLED && {
            // PAIRS(semaphore): acquire here, release in `signal`.
            self.word.swap(QUIET, Ordering::Acquire) == SIGNALLED
        }
    }

    /// Sleeps until the signal has come or the time is up.
    #[cold]
    fn sleep(&self, deadline: Deadline) {
        let left = deadline.left();
        // Relaxed, both: the order of exchanges on this one word decides.
        let exchange =
            |from, to| self.word.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
        if exchange(QUIET, WAITING).is_ok() {
            futex::wait_private(&self.word, WAITING, left);
            let _ = exchange(WAITING, QUIET);
        }
    }
}

impl Signals for Semaphore {
    type Signal = SemaphoreSignal;
    const COUNT: usize = 1;

    fn bind(&self, number: usize) -> Result<SemaphoreSignal, NoSuchSignal> {
        NoSuchSignal::check(number, Self::COUNT).map(|()| self.sender())
    }

    #[inline]
    fn check(&mut self) -> SignalSet {
        SignalSet::of_word(u64::from(self.take()))
    }

    fn poll(&mut self, limit: Duration) -> SignalSet {
        let deadline = Deadline::after(limit);
        while !self.take() {
            if deadline.is_over() {
                return SignalSet::default();
            }
            self.sleep(deadline);
        }
        SignalSet::of_word(1)
    }
}

impl Signal for SemaphoreSignal {
    #[inline]
    fn signal(&self) {
        // PAIRS(semaphore): release here, acquire in `take`.
        if self.word.swap(SIGNALLED, Ordering::Release) == WAITING {
            wake_up(|| futex::wake_private(&self.word, 1));
        }
    }
}
