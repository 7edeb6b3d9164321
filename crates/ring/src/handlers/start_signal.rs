//! Start signal of a handler's thread: running and pinned to its CPU, or failed.

use lanecast_base::sync::{AtomicU32, Ordering};
use lanecast_os::futex;

const UNDER_WAY: u32 = 0;
const HERE: u32 = 1;
const LOST: u32 = 2;

/// Signal from a new thread to the one that starts it.
#[derive(Debug)]
pub(super) struct StartSignal(AtomicU32);

impl StartSignal {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(UNDER_WAY))
    }

    /// Reports success or failure.
    pub(super) fn tell(&self, is_here: bool) {
        // PAIRS(handlers-arrival): release here, acquire in `wait`.
        self.0.store(if is_here { HERE } else { LOST }, Ordering::Release);
        futex::wake_private(&self.0, 1);
    }

    /// Waits for the report; returns whether the thread has started.
    pub(super) fn wait(&self) -> bool {
        loop {
            // PAIRS(handlers-arrival): acquire here, release in `tell`.
            match self.0.load(Ordering::Acquire) {
                UNDER_WAY => futex::wait_private(&self.0, UNDER_WAY, None),
                word => return word == HERE,
            }
        }
    }
}
