//! Count of what lingers when a network is dropped, which waits for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of closed publishers that still have repairs to send, and of connections whose last
/// frames are on their way.
#[derive(Debug, Default)]
pub(crate) struct Lingering {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Lingering {
    fn count(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called by the thread that closes, before the one that serves what is closed knows of it.
    pub(crate) fn add(&self) {
        *self.count() += 1;
    }

    /// Called exactly once for each [`add`](Self::add).
    pub(crate) fn remove(&self) {
        *self.count() -= 1;
        self.changed.notify_all();
    }

    /// Waits until nothing lingers, at most `limit`.
    pub(crate) fn wait_until_finished(&self, limit: Duration) {
        let count = self.count();
        // A timeout needs no handling: the network closes in both cases.
        drop(self.changed.wait_timeout_while(count, limit, |count| *count > 0));
    }
}
