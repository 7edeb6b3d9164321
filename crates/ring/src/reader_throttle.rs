//! Reader throttle: pauses of a fast reader, so that its writer gets ahead.
//!
//! A reader slightly faster than its writer takes each cache line away while it is written, and the
//! processor's prefetcher takes the next ones. Both then work at the pace of cache-line transfers,
//! some ten nanoseconds a value. If the reader lets the writer get ahead first, both find their
//! lines in their own caches.
//!
//! Source of the idea: FastForward (PPoPP 2008), "temporal slipping". Here the reader pauses only
//! while it pays: at rates above one value per two pauses, some 40 million a second. A single
//! value never waits.

use lanecast_base::{WaitStrategy, spin};
use std::time::{Duration, Instant};

/// Successful polls, less the empty ones, before the first pause is tried.
const POLLS_MIN: u32 = 8;
/// Maximum of the same after pauses that have not paid.
const POLLS_MAX: u32 = 4096;
/// The first pause.
const PAUSES_MIN: u32 = 16;
/// The longest: some microseconds.
const PAUSES_MAX: u32 = 256;

/// Number of pauses from which the core is yielded first.
const PAUSES_TO_YIELD: u32 = 64;
/// Duration of a yield after which another thread has run: the pauses are then skipped.
const YIELDED: Duration = Duration::from_micros(2);

/// Spins for `pauses`, or lets another thread run on this core.
#[inline(always)]
pub(crate) fn pause(pauses: u32, strategy: WaitStrategy) {
    if pauses < PAUSES_TO_YIELD || strategy == WaitStrategy::BusySpin {
        spin(pauses);
    } else {
        yield_or_spin(pauses);
    }
}

#[cold]
fn yield_or_spin(pauses: u32) {
    let start = Instant::now();
    std::thread::yield_now();
    if start.elapsed() < YIELDED {
        spin(pauses);
    }
}

/// State of a reader's pauses after it has caught up.
#[derive(Debug)]
pub(crate) struct ReaderThrottle {
    /// Values to read from which the reader is far enough behind to skip a pause.
    far: usize,
    /// Recent successful polls, less empty ones.
    polls: u32,
    /// Value of `polls` from which a pause is tried.
    polls_before_pause: u32,
    /// Length of the next pause; 0 while pausing does not pay.
    pauses: u32,
    /// Whether the last poll came after a pause.
    has_paused: bool,
}

impl ReaderThrottle {
    /// A throttle for a reader that is far enough behind with `far` values to read.
    pub(crate) const fn new(far: usize) -> Self {
        Self { far, polls: 0, polls_before_pause: POLLS_MIN, pauses: 0, has_paused: false }
    }

    /// Number of pauses before the next poll of a reader that has handled all `work` values (not 0)
    /// it knew of.
    #[inline(always)]
    pub(crate) fn caught_up(&mut self, work: usize) -> u32 {
        if self.pauses == 0 && self.polls < self.polls_before_pause {
            self.polls += 1;
            0
        } else {
            self.next(work)
        }
    }

    /// Notes an empty poll.
    #[inline(always)]
    pub(crate) fn empty(&mut self) {
        self.polls = self.polls.saturating_sub(1);
    }

    #[inline(never)]
    fn next(&mut self, work: usize) -> u32 {
        if core::mem::take(&mut self.has_paused) && work as u64 * 2 < u64::from(self.pauses) {
            self.polls_before_pause = (self.polls_before_pause * 2).min(POLLS_MAX);
            (self.pauses, self.polls) = (0, 0);
            return 0;
        }
        if work >= self.far {
            return 0;
        }
        self.pauses = (self.pauses * 2).clamp(PAUSES_MIN, PAUSES_MAX);
        if self.pauses == PAUSES_MAX {
            self.polls_before_pause = POLLS_MIN;
        }
        self.has_paused = true;
        self.pauses
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn single_values_never_wait() {
        let mut throttle = ReaderThrottle::new(256);
        for _ in 0..10_000 {
            assert_eq!(throttle.caught_up(1), 0);
            throttle.empty();
        }
    }

    #[test]
    fn pauses_grow_while_they_pay() {
        let mut throttle = ReaderThrottle::new(1 << 14);
        let pauses: Vec<u32> = (0..16).map(|_| throttle.caught_up(200)).collect();
        assert_eq!(pauses[..POLLS_MIN as usize], [0; POLLS_MIN as usize]);
        assert_eq!(pauses[POLLS_MIN as usize..][..6], [16, 32, 64, 128, 256, 256]);
        assert_eq!(throttle.caught_up(1 << 14), 0, "far behind already");
    }

    #[test]
    fn pauses_that_do_not_pay_are_tried_less_and_less() {
        let mut throttle = ReaderThrottle::new(1 << 14);
        let tries = (0..100_000).filter(|_| throttle.caught_up(1) > 0).count();
        assert!((10..50).contains(&tries), "{tries} in 100,000 polls");
    }
}
