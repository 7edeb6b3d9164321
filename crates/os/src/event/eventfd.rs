//! The bell itself: eventfd(2).

use super::wait_readable;
use crate::checked;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A descriptor that is readable from the time it is rung until it is hushed.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// A bell, which is ringing already if `ringing`.
    ///
    /// # Errors
    /// If the process has no more descriptors to give.
    pub fn new(ringing: bool) -> io::Result<Self> {
        // SAFETY: eventfd takes no pointers.
        let fd = checked(unsafe {
            libc::eventfd(u32::from(ringing), libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)
        })?;
        // SAFETY: the system has just given this descriptor to us alone.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Makes the descriptor readable.
    pub fn signal(&self) {
        let one = 1_u64;
        // It fails only when rung 2^64 times and never hushed: then it is readable anyway.
        // SAFETY: `one` is readable and as long as is said.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    /// Makes the descriptor unreadable until it is rung again.
    pub fn clear(&self) {
        let mut rings = 0_u64;
        // It fails only where nobody has rung.
        // SAFETY: `rings` is writable and as long as is said.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut rings).cast(), size_of::<u64>()) };
    }

    /// Sleeps until it rings, at most `limit`. Wakes early now and then.
    pub fn wait(&self, limit: Option<Duration>) {
        wait_readable([self.as_fd()], limit);
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
