//! Passive synchronisation: who finds nothing says so, and is woken by who brings something.
//!
//! A sleeper marks itself asleep and looks once more; a publisher publishes and looks at the
//! mark. Each needs a store-load fence in between, or both could look too early and the sleeper
//! would sleep through its message. Neither side should pay for what the other does often:
//!
//! - While sleeps are rare, the publisher's fence is free, and the sleeper makes every CPU pass
//!   a barrier on its behalf (`membarrier`, some microseconds).
//! - A sleeper that sleeps again and again asks publishers, once, to fence themselves
//!   (some ten nanoseconds). Its sleeps are cheap from then on, until it is busy again.
//!
//! Source of the contract: the ypipe of the Y-suite, whose reader marks itself asleep in the same
//! step in which it finds nothing.

use lanecast_base::sync::{AtomicU32, Ordering, fence, light_fence};
use lanecast_os::barrier;

/// Somebody sleeps, or is about to.
const ASLEEP: u32 = 1;
/// One sleeper that has asked publishers to fence.
const FENCED: u32 = 2;
/// The only sleeper has left for good.
const GONE: u32 = 1 << 31;

/// The mark: one word, written on the way to sleep and on waking only.
#[derive(Debug, Default)]
pub(crate) struct ParkFlag {
    word: AtomicU32,
}

/// One sleeper's side: how often it has slept lately.
#[derive(Debug, Default)]
pub(crate) struct Sleeper {
    /// Grows with each sleep, shrinks with each find.
    recent_parks: u32,
    /// Whether publishers fence for this sleeper.
    fenced: bool,
}

/// What one sleep adds to a sleeper's weariness.
const SLEEP: u32 = 4;
/// From here on publishers are asked to fence.
const FENCE_FROM: u32 = 12;
/// It grows no further, so that a busy sleeper is soon known as such.
const PARKS_MAX: u32 = 24;

/// What lies between a sleeper's mark and its last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fence {
    /// Publishers fence themselves: the sleeper's own fence is enough.
    Own,
    /// Publishers rely on the sleeper.
    Everywhere,
}

impl Fence {
    pub(crate) fn pass(self) {
        match self {
            // PAIRS(asleep): with `take`; publishers fence, because they see the request.
            Self::Own => fence(Ordering::SeqCst),
            Self::Everywhere => {
                barrier::heavy_fence();
            }
        }
    }
}

impl ParkFlag {
    /// Whether somebody sleeps, or may be about to; for those who hold something back.
    #[inline(always)]
    pub(crate) fn has_sleepers(&self) -> bool {
        light_fence();
        self.word.load(Ordering::Relaxed) != 0
    }

    /// Whether the caller, who has just published, now owes the sleepers a wake-up.
    ///
    /// Of several publishers exactly one owes it.
    #[inline(always)]
    pub(crate) fn must_wake(&self) -> bool {
        light_fence();
        self.word.load(Ordering::Relaxed) != 0 && self.take()
    }

    /// The same for those who know already that somebody [is awaited](Self::is_awaited).
    #[cold]
    pub(crate) fn take(&self) -> bool {
        // PAIRS(asleep): published, fence, mark here; mark, fence, look again in `mark`.
        fence(Ordering::SeqCst);
        if self.word.load(Ordering::Relaxed) & ASLEEP == 0 {
            return false;
        }
        // PAIRS(asleep-wakes): acquire here, release in `announce`: what counts wake-ups was read
        // before. What was published is seen where it was published.
        self.word.fetch_and(!ASLEEP, Ordering::Acquire) & ASLEEP != 0
    }

    /// Marks the caller asleep: it must look once more before it sleeps.
    pub(crate) fn mark(&self, sleeper: &mut Sleeper) {
        self.announce(sleeper).pass();
    }

    /// The same for those who sleep under several marks: they must pass a fence of the dearest
    /// kind that any mark asks for before they look once more.
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
            // The heavy fence also makes the request, if there is one, seen by every later
            // publication.
            sleeper.fenced = ask;
            Fence::Everywhere
        }
    }

    /// Puts the request for fences in place before anybody publishes.
    #[cfg(all(test, loom))]
    pub(crate) fn fence_always(&self, sleeper: &mut Sleeper) {
        self.word.fetch_add(FENCED, Ordering::Relaxed);
        sleeper.fenced = true;
    }

    /// The only sleeper leaves for good: publishers are told from now on.
    pub(crate) fn leave(&self) {
        // Relaxed: that nobody reads any more is all there is to know.
        self.word.store(GONE, Ordering::Relaxed);
    }

    /// Whether the only sleeper has left.
    #[inline(always)]
    pub(crate) fn is_gone(&self) -> bool {
        self.word.load(Ordering::Relaxed) & GONE != 0
    }

    /// Takes the mark back; false if a publisher was faster, whose wake-up is owed and comes.
    pub(crate) fn unmark(&self) -> bool {
        // Relaxed: what counts is who comes first on this one word.
        self.word.fetch_and(!ASLEEP, Ordering::Relaxed) & ASLEEP != 0
    }

    /// The sleeper has found something without sleeping.
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

    /// The sleeper goes: nobody fences for it any more.
    pub(crate) fn forget(&self, sleeper: &mut Sleeper) {
        if core::mem::take(&mut sleeper.fenced) {
            self.word.fetch_sub(FENCED, Ordering::Relaxed);
        }
    }
}
