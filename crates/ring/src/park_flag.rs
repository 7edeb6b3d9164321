//! Park flag: tells publishers that a consumer sleeps, or is about to, and must be woken.
//!
//! A sleeper sets the flag and polls once more; a publisher publishes and reads the flag. Each
//! needs a store-load fence in between, or the sleeper could miss its message. The cost of the
//! fences depends on the frequency of sleeps:
//!
//! - While sleeps are rare, the publisher's fence is free, and the sleeper makes every thread pass
//!   a barrier on its behalf (`membarrier`, some microseconds).
//! - A sleeper that sleeps often asks publishers, once, to fence themselves (some ten
//!   nanoseconds). Its sleeps are cheap from then on, until it is busy again.
//!
//! Source of the contract: the ypipe of the Y-suite, whose reader sets the flag in the same step
//! in which it finds nothing.

use lanecast_base::sync::{AtomicU32, Ordering, fence, light_fence};
use lanecast_os::barrier;
use std::time::Duration;

/// Longest sleep after a fence that did not reach every publisher.
pub(crate) const UNCOVERED_PARK_TIME: Duration = Duration::from_millis(1);

/// A consumer sleeps, or is about to.
const ASLEEP: u32 = 1;
/// One sleeper that has asked publishers to fence.
const FENCED: u32 = 2;
/// The only consumer was dropped.
const GONE: u32 = 1 << 31;

/// The flag: one word, written before a sleep and by a wake-up only.
#[derive(Debug, Default)]
pub(crate) struct ParkFlag {
    word: AtomicU32,
}

/// A sleeper's own state: the frequency of its recent sleeps.
#[derive(Debug, Default)]
pub(crate) struct Sleeper {
    /// Grows with each sleep, shrinks with each successful poll.
    recent_parks: u32,
    /// Whether publishers fence for this sleeper.
    fenced: bool,
}

/// Weight of one sleep in `recent_parks`.
const SLEEP: u32 = 4;
/// Value of `recent_parks` from which publishers are asked to fence.
const FENCE_FROM: u32 = 12;
/// Limit of `recent_parks`, so that a sleeper that becomes busy soon stops asking for fences.
const PARKS_MAX: u32 = 24;

/// Fence between setting the flag and the last poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fence {
    /// The sleeper's own fence, since publishers fence as well.
    Own,
    /// A barrier in every thread of this process, since publishers do not fence.
    Process,
}

impl Fence {
    /// Returns whether every publisher is sure to see the flag. If not, since the system has come
    /// to refuse barriers, the sleep must be short, and the sleeper's request is to be
    /// [forgotten](ParkFlag::forget): publishers may not have seen that either.
    #[must_use]
    pub(crate) fn pass(self) -> bool {
        match self {
            Self::Own => {
                // PAIRS(asleep): with `take`; publishers fence, because they see the request.
                fence(Ordering::SeqCst);
                true
            }
            Self::Process => barrier::heavy_fence_within_process(),
        }
    }
}

impl ParkFlag {
    /// Whether a consumer sleeps or may be about to; for publishers that hold messages back.
    #[inline(always)]
    pub(crate) fn has_sleepers(&self) -> bool {
        light_fence();
        self.word.load(Ordering::Relaxed) != 0
    }

    /// Whether the caller, which has published, must wake the sleepers. True for exactly one
    /// of several publishers.
    #[inline(always)]
    pub(crate) fn must_wake(&self) -> bool {
        light_fence();
        self.word.load(Ordering::Relaxed) != 0 && self.take()
    }

    /// As [`must_wake`](Self::must_wake), after [`has_sleepers`](Self::has_sleepers).
    #[cold]
    pub(crate) fn take(&self) -> bool {
        // PAIRS(asleep): published, fence, flag here; flag, fence, poll again in `mark`.
        fence(Ordering::SeqCst);
        if self.word.load(Ordering::Relaxed) & ASLEEP == 0 {
            return false;
        }
        // PAIRS(asleep-wakes): acquire here, release in `announce`: the sleeper has read the count
        // of wake-ups before. The published position has its own ordering.
        self.word.fetch_and(!ASLEEP, Ordering::Acquire) & ASLEEP != 0
    }

    /// Sets the flag: the caller must poll once more before it sleeps. Returns whether every
    /// publisher is sure to see it; if not, the sleep must be short.
    pub(crate) fn mark(&self, sleeper: &mut Sleeper) -> bool {
        let is_covered = self.announce(sleeper).pass();
        if !is_covered {
            self.forget(sleeper);
        }
        is_covered
    }

    /// Sets the flag without a fence, for consumers of several publishers: before the last poll
    /// they must pass the strongest of the returned fences.
    pub(crate) fn announce(&self, sleeper: &mut Sleeper) -> Fence {
        sleeper.recent_parks = (sleeper.recent_parks + SLEEP).min(PARKS_MAX);
        let ask = !sleeper.fenced && sleeper.recent_parks >= FENCE_FROM;
        if ask {
            self.word.fetch_add(FENCED, Ordering::Relaxed);
        }
        // PAIRS(asleep-wakes): release here, acquire in `take`.
        self.word.fetch_or(ASLEEP, Ordering::Release);
        if sleeper.fenced {
            Fence::Own
        } else {
            // The heavy fence also makes a request for fences visible to every later publication.
            sleeper.fenced = ask;
            Fence::Process
        }
    }

    /// Requests fences before the first publication.
    #[cfg(all(test, loom))]
    pub(crate) fn fence_always(&self, sleeper: &mut Sleeper) {
        self.word.fetch_add(FENCED, Ordering::Relaxed);
        sleeper.fenced = true;
    }

    /// Notes that the only consumer was dropped.
    pub(crate) fn leave(&self) {
        // Relaxed: the flag carries no other data.
        self.word.store(GONE, Ordering::Relaxed);
    }

    /// Whether the only consumer was dropped.
    #[inline(always)]
    pub(crate) fn is_gone(&self) -> bool {
        self.word.load(Ordering::Relaxed) & GONE != 0
    }

    /// Clears the flag; false if a publisher was faster, whose wake-up then comes.
    pub(crate) fn unmark(&self) -> bool {
        // Relaxed: the order of exchanges on this one word decides.
        self.word.fetch_and(!ASLEEP, Ordering::Relaxed) & ASLEEP != 0
    }

    /// Notes a successful poll without a sleep.
    #[inline(always)]
    pub(crate) fn found(&self, sleeper: &mut Sleeper) {
        if sleeper.recent_parks != 0 {
            self.recover(sleeper);
        }
    }

    #[cold]
    fn recover(&self, sleeper: &mut Sleeper) {
        sleeper.recent_parks -= 1;
        if sleeper.recent_parks == 0 {
            self.forget(sleeper);
        }
    }

    /// Withdraws the sleeper's request for fences.
    pub(crate) fn forget(&self, sleeper: &mut Sleeper) {
        if core::mem::take(&mut sleeper.fenced) {
            self.word.fetch_sub(FENCED, Ordering::Relaxed);
        }
    }
}
