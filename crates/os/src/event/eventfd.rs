//! The event on Linux: eventfd(2), or a named pipe, which other processes can signal.

use super::wait_readable;
use crate::checked;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Signals that one read takes: a pipe holds each signal, an eventfd their number.
const SIGNALS: usize = 64;
/// Reads that empty a pipe of 64 KiB, its usual size.
const READS: usize = 65_536 / (SIGNALS * size_of::<u64>());

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
        // SAFETY: the system has given this new descriptor to us alone.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// An event over a pipe of [`make_pipe`](crate::make_pipe) or
    /// [`open_pipe`](crate::open_pipe), shared with all who have opened it.
    pub fn over_pipe(pipe: File) -> Self {
        Self(pipe.into())
    }

    /// Makes the descriptor readable.
    pub fn signal(&self) {
        let one = 1_u64;
        // It fails only if it is full of signals: the descriptor is readable anyway.
        // SAFETY: `one` is readable for the given length.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    /// Makes the descriptor unreadable until the next signal; returns whether it was readable.
    pub fn clear(&self) -> bool {
        let mut signals = [0_u64; SIGNALS];
        let room = size_of_val(&signals);
        // Bounded: other processes can fill a pipe as fast as it is read.
        for reads in 0..READS {
            // SAFETY: `signals` is writable for the given length.
            let read = unsafe { libc::read(self.0.as_raw_fd(), signals.as_mut_ptr().cast(), room) };
            // It fails only if the event is not signalled.
            if usize::try_from(read).is_ok_and(|read| read == room) {
                continue;
            }
            return reads > 0 || read > 0;
        }
        true
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
