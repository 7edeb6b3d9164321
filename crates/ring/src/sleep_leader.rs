//! One of a group keeps watch while the others sleep.
//!
//! Whoever brings something wakes the watch alone, however many sleep. The watch wakes the next
//! before it looks at what has come: who finds nothing there keeps watch, who finds something
//! wakes the next. So as many wake as there is work for, and one more.

use lanecast_base::sync::{AtomicBool, AtomicU32, Ordering};
use lanecast_os::futex;
use std::time::Duration;

/// The watch of one group.
#[derive(Debug, Default)]
pub(crate) struct SleepLeader {
    is_kept: AtomicBool,
    /// Counts the watches that have ended: the word that the others sleep on.
    ended: AtomicU32,
}

impl SleepLeader {
    /// Keeps watch with `sleep`, which returns when there may be something to find. As long as
    /// another keeps watch, sleeps until that one wakes somebody, at most `limit`.
    #[cold]
    pub(crate) fn keep(&self, limit: Duration, sleep: impl FnOnce()) {
        // PAIRS(watch-ended): acquire here, release in `end`: who sees this watch ended cannot
        // find it kept below.
        let ended = self.ended.load(Ordering::Acquire);
        if !self.begin() {
            futex::wait_private(&self.ended, ended, Some(limit));
            // Whoever is woken keeps watch itself: nobody else may be awake to do it.
            if !self.begin() {
                return;
            }
        }
        sleep();
        self.end();
    }

    fn begin(&self) -> bool {
        // Relaxed: nothing is read that the one before has written. Who fails writes nothing, so
        // that it cannot be taken for one that keeps watch.
        let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        self.is_kept.compare_exchange(false, true, done, failed).is_ok()
    }

    fn end(&self) {
        self.is_kept.store(false, Ordering::Relaxed);
        // PAIRS(watch-ended): release here, acquire in `keep`.
        self.ended.fetch_add(1, Ordering::Release);
        futex::wake_private(&self.ended, 1);
    }
}
