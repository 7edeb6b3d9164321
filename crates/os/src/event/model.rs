//! The event in the loom model checker, which has no descriptors.

use loom::sync::{Condvar, Mutex};
use std::io;
use std::time::Duration;

/// An event that is signalled from [`signal`](Self::signal) to [`clear`](Self::clear).
#[derive(Debug)]
pub struct EventFd {
    signals: Mutex<bool>,
    changed: Condvar,
}

impl EventFd {
    /// A new event, signalled already if `signalled`.
    ///
    /// # Errors
    /// Never.
    pub fn new(signalled: bool) -> io::Result<Self> {
        Ok(Self { signals: Mutex::new(signalled), changed: Condvar::new() })
    }

    /// Signals the event.
    pub fn signal(&self) {
        *self.signals.lock().unwrap() = true;
        self.changed.notify_all();
    }

    /// Clears the event; returns whether it was signalled.
    pub fn clear(&self) -> bool {
        std::mem::take(&mut *self.signals.lock().unwrap())
    }

    /// Whether the event is signalled.
    pub fn is_signalled(&self) -> bool {
        *self.signals.lock().unwrap()
    }

    /// Sleeps until the event is signalled.
    pub fn wait(&self, _limit: Option<Duration>) {
        let mut signals = self.signals.lock().unwrap();
        while !*signals {
            signals = self.changed.wait(signals).unwrap();
        }
    }
}
