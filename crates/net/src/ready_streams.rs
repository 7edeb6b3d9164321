//! TCP connections with something to read: found by one system call, however many there are.
//!
//! Owned by the sessions of a subscriber, or by a publisher's connections. Reading each connection
//! in turn costs a system call for each that has nothing, and the more there are, the rarer is the
//! one that has.

use lanecast_os::epoll::Epoll;
use std::os::fd::AsFd;
use std::time::Duration;

/// Connections by number, and those that were readable at the last look.
#[derive(Debug, Default)]
pub(crate) struct ReadyStreams {
    /// `None` before the first connection is added.
    set: Option<Epoll>,
    ready: Vec<u64>,
    /// The last look found nothing, and nothing was read since.
    is_idle: bool,
}

impl ReadyStreams {
    /// Adds a connection. It leaves when it is closed. False if the system has no room: the caller
    /// reads it unasked.
    pub(crate) fn add(&mut self, stream: &impl AsFd, number: u64) -> bool {
        if self.set.is_none() {
            self.set = Epoll::new().ok();
        }
        self.set.as_ref().is_some_and(|set| set.add(stream.as_fd(), number).is_ok())
    }

    /// Asks the system for all connections that are readable now.
    #[inline]
    pub(crate) fn look(&mut self) {
        self.ready.clear();
        if let Some(set) = &self.set {
            // A refusal is transient, and the next look finds the same.
            drop(set.wait(Some(Duration::ZERO), &mut self.ready));
        }
        self.is_idle |= self.ready.is_empty();
    }

    /// Whether the read that follows is the first one since a look found nothing.
    #[inline]
    pub(crate) const fn take_idle(&mut self) -> bool {
        std::mem::replace(&mut self.is_idle, false)
    }

    /// The next of those; each comes once for every look. It may have been read since.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u64> {
        self.ready.pop()
    }
}
