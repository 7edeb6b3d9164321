//! Keeping a fast reader off its writer's heels.
//!
//! A reader that is a little faster than its writer takes each cache line away in the middle of
//! being written, and the processor's prefetcher takes the next ones too. Both then work at the
//! pace of lines that travel, some ten nanoseconds a value. If the reader lets the writer get
//! ahead first, both find their lines where they need them.
//!
//! Source of the idea: FastForward (PPoPP 2008), "temporal slipping". Here it is done only while
//! it pays: while values come faster than one every second `pause`, some 40 million a second.
//! Nothing that comes alone waits.

use lanecast_base::{WaitStrategy, spin};
use std::time::{Duration, Instant};

/// Successful looks, less the empty ones, before the first pause is tried.
const POLLS_MIN: u32 = 8;
/// The same after pauses that have not paid.
const POLLS_MAX: u32 = 4096;
/// The first pause.
const PAUSES_MIN: u32 = 16;
/// The longest: some microseconds.
const PAUSES_MAX: u32 = 256;

/// From so many pauses on, others on this core are asked first whether they can use the time.
const PAUSES_TO_GIVE: u32 = 64;
/// Somebody else has had the core for a while: time enough has passed.
const GIVEN: Duration = Duration::from_micros(2);

/// Lets time pass: `pauses`, or somebody else's turn on this core.
#[inline(always)]
pub(crate) fn pause(pauses: u32, strategy: WaitStrategy) {
    if pauses < PAUSES_TO_GIVE || strategy == WaitStrategy::BusySpin {
        spin(pauses);
    } else {
        give(pauses);
    }
}

#[cold]
fn give(pauses: u32) {
    let start = Instant::now();
    std::thread::yield_now();
    if start.elapsed() < GIVEN {
        spin(pauses);
    }
}

/// A reader's pauses after it has caught up.
#[derive(Debug)]
pub(crate) struct ReaderThrottle {
    /// So many values or more, and the reader is far enough behind.
    far: usize,
    /// Successful looks lately, less empty ones.
    polls: u32,
    /// How many of them it takes to try a pause.
    polls_before_pause: u32,
    /// How long the next pause is; 0 while pausing does not pay.
    pauses: u32,
    /// Whether the last look came after a pause.
    has_paused: bool,
}

impl ReaderThrottle {
    /// For a reader that is far enough behind with `far` values to read.
    pub(crate) const fn new(far: usize) -> Self {
        Self { far, polls: 0, polls_before_pause: POLLS_MIN, pauses: 0, has_paused: false }
    }

    /// The reader has handled `work` values (not 0), all that it knew of: how many pauses to make
    /// before the next look.
    #[inline(always)]
    pub(crate) fn caught_up(&mut self, work: usize) -> u32 {
        if self.pauses == 0 && self.polls < self.polls_before_pause {
            self.polls += 1;
            0
        } else {
            self.next(work)
        }
    }

    /// The reader has found nothing.
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
    fn what_comes_alone_never_waits() {
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
