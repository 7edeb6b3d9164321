//! The publisher of a session joined from another process, watched by the conductor.

use crate::liveness::is_publisher_alive;
use crate::wake_signal::WakeSignal;
use lanecast_base::sync::{AtomicBool, Ordering};
use lanecast_os::process::Identity;
use std::fs::File;
use std::sync::Arc;

/// A publisher in another process, which may die without closing its session.
#[derive(Debug)]
pub(crate) struct RemotePublisher {
    ring: File,
    process: Identity,
    /// Wakes the subscriber that has joined the session.
    signal: Arc<WakeSignal>,
    is_gone: AtomicBool,
}

impl RemotePublisher {
    pub(crate) const fn new(ring: File, process: Identity, signal: Arc<WakeSignal>) -> Self {
        Self { ring, process, signal, is_gone: AtomicBool::new(false) }
    }

    pub(crate) const fn process(&self) -> &Identity {
        &self.process
    }

    pub(crate) const fn pid(&self) -> u32 {
        self.process.pid
    }

    /// Asks the kernel whether the publisher lives; if not, wakes the subscriber.
    pub(crate) fn check_alive(&self) -> bool {
        if is_publisher_alive(&self.ring, self.process) {
            return true;
        }
        self.note_gone();
        false
    }

    /// Notes that the kernel has told of the publisher's end, and wakes the subscriber.
    pub(crate) fn note_gone(&self) {
        // PAIRS(gone): release here, acquire in `is_gone`. After the kernel's answer everything
        // that the publisher committed is visible.
        self.is_gone.store(true, Ordering::Release);
        self.signal.wake();
    }

    /// Whether the publisher's process has ended.
    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        // PAIRS(gone): acquire here, release in `note_gone`.
        self.is_gone.load(Ordering::Acquire)
    }
}
