//! Wake-up of a subscriber for anything but messages: a session joined, a publisher died, an alarm.

use lanecast_base::sync::{AtomicU32, Ordering};
use lanecast_os::futex;

/// A counter of wake-ups, on which the subscriber sleeps.
#[derive(Debug, Default)]
pub(crate) struct WakeSignal {
    epoch: AtomicU32,
}

impl WakeSignal {
    /// Wakes the subscriber, now or at its next sleep.
    pub(crate) fn wake(&self) {
        // PAIRS(wake-epoch): release here, acquire in `epoch`.
        self.epoch.fetch_add(1, Ordering::Release);
        // All: the subscriber and the domain's wake-up thread may sleep on it at once.
        futex::wake(&self.epoch, futex::ALL);
    }

    /// Wake-ups so far, modulo 2^32. Their causes are visible afterwards.
    #[inline(always)]
    pub(crate) fn epoch(&self) -> u32 {
        // PAIRS(wake-epoch): acquire here, release in `wake`.
        self.epoch.load(Ordering::Acquire)
    }

    /// The word to sleep on.
    pub(crate) const fn word(&self) -> &AtomicU32 {
        &self.epoch
    }
}
