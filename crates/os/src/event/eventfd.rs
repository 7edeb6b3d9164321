//! The event on Linux: eventfd(2).

use super::wait_readable;
use crate::checked;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// An event: a descriptor that is readable from [`signal`](Self::signal) to
/// [`clear`](Self::clear).
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// A new event, signalled already if `signalled`.
    ///
    /// # Errors
    /// If the process has no free descriptor.
    pub fn new(signalled: bool) -> io::Result<Self> {
        // SAFETY: eventfd takes no pointers.
        let fd = checked(unsafe {
            libc::eventfd(u32::from(signalled), libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)
        })?;
        // SAFETY: the system has just given this descriptor to us alone.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Makes the descriptor readable.
    pub fn signal(&self) {
        let one = 1_u64;
        // It fails only after 2^64 signals without a clear: the descriptor is readable anyway.
        // SAFETY: `one` is readable for the given length.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    /// Makes the descriptor unreadable until the next signal.
    pub fn clear(&self) {
        let mut signals = 0_u64;
        // It fails only if the event is not signalled.
        // SAFETY: `signals` is writable for the given length.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut signals).cast(), size_of::<u64>()) };
    }

    /// Sleeps until the event is signalled, at most `limit`. May wake early.
    pub fn wait(&self, limit: Option<Duration>) {
        wait_readable([self.as_fd()], limit);
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
