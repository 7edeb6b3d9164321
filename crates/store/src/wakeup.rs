//! One descriptor for all that a store waits for: messages, frames, and the disk.

use lanecast_os::epoll::Epoll;
use lanecast_os::event::ArmedEvent;
use lanecast_transport::Subscribe;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// Sleeps until a subscriber has something, or the disk has written records.
#[derive(Debug)]
pub(crate) struct Wakeup {
    set: Epoll,
    written: Arc<ArmedEvent>,
    ready: Vec<u64>,
}

impl Wakeup {
    /// `written` is notified when the journal has come further.
    pub(crate) fn new(written: Arc<ArmedEvent>) -> io::Result<Self> {
        let set = Epoll::new()?;
        set.add(written.as_fd(), 0)?;
        Ok(Self { set, written, ready: Vec::new() })
    }

    /// Waits for this subscriber too, until it is dropped.
    pub(crate) fn add(&self, subscriber: &mut impl Subscribe) -> io::Result<()> {
        self.set.add(subscriber.wakeup()?, 0)
    }

    /// Makes the descriptor readable with the disk's next news, before a last look at those that
    /// are there. Without it the disk's progress costs no system call.
    pub(crate) fn arm(&self) {
        if !self.written.is_armed() {
            self.written.clear_and_arm();
        }
    }

    /// Sleeps until there is something to do, at most `limit`.
    pub(crate) fn wait(&mut self, limit: Duration) {
        // A set that cannot be waited on (a limit of the system) must not become a busy loop.
        if self.set.wait(Some(limit), &mut self.ready).is_err() {
            std::thread::sleep(limit.min(Duration::from_millis(1)));
        }
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}
