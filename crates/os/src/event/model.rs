//! The bell inside the model checker, which knows no descriptors.

use loom::sync::{Condvar, Mutex};
use std::io;
use std::time::Duration;

/// A bell that rings from the time it is rung until it is hushed.
#[derive(Debug)]
pub struct EventFd {
    rings: Mutex<bool>,
    rung: Condvar,
}

impl EventFd {
    /// A bell, which is ringing already if `ringing`.
    ///
    /// # Errors
    /// Never.
    pub fn new(ringing: bool) -> io::Result<Self> {
        Ok(Self { rings: Mutex::new(ringing), rung: Condvar::new() })
    }

    /// Rings it.
    pub fn signal(&self) {
        *self.rings.lock().unwrap() = true;
        self.rung.notify_all();
    }

    /// Makes it silent.
    pub fn clear(&self) {
        *self.rings.lock().unwrap() = false;
    }

    /// Sleeps until it rings.
    pub fn wait(&self, _limit: Option<Duration>) {
        let mut rings = self.rings.lock().unwrap();
        while !*rings {
            rings = self.rung.wait(rings).unwrap();
        }
    }
}
