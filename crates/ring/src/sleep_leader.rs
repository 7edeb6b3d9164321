//! Leader/followers sleep of a worker group: one worker, the leader, sleeps on the rings, and the
//! others on the leader.
//!
//! A publisher wakes the leader only. The leader wakes a follower before it polls; a follower
//! without work becomes the next leader, one with work wakes the next follower. As many workers
//! wake as there is work for, and one more.

use lanecast_base::sync::{AtomicBool, AtomicU32, Ordering};
use lanecast_os::futex;
use std::time::Duration;

/// The sleep of one worker group.
#[derive(Debug, Default)]
pub(crate) struct SleepLeader {
    is_kept: AtomicBool,
    /// Number of leaders that have woken: the word that followers sleep on.
    ended: AtomicU32,
}

impl SleepLeader {
    /// Sleeps as the leader with `sleep`, which returns when there may be work; with another
    /// leader, sleeps first until that one wakes, at most `limit`.
    #[cold]
    pub(crate) fn keep(&self, limit: Duration, sleep: impl FnOnce()) {
        // PAIRS(watch-ended): acquire here, release in `end`: after reading the new count, `begin`
        // below cannot see the old leader.
        let ended = self.ended.load(Ordering::Acquire);
        if !self.begin() {
            futex::wait_private(&self.ended, ended, Some(limit));
            // A woken follower leads: possibly no other worker is awake.
            if !self.begin() {
                return;
            }
        }
        sleep();
        self.end();
    }

    fn begin(&self) -> bool {
        // Relaxed: it guards no data. A failed exchange writes nothing, so that it cannot look like
        // a leader.
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
