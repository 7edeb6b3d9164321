//! A bell that a thread can wait for beside its sockets: eventfd(2), and poll(2).

use crate::checked;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A descriptor that is readable from the time it is rung until it is hushed.
#[derive(Debug)]
pub struct EventBell(OwnedFd);

impl EventBell {
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
    pub fn ring(&self) {
        let one = 1_u64;
        // It fails only when rung 2^64 times and never hushed: then it is readable anyway.
        // SAFETY: `one` is readable and as long as is said.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    /// Makes the descriptor unreadable until it is rung again.
    pub fn hush(&self) {
        let mut rings = 0_u64;
        // It fails only where nobody has rung.
        // SAFETY: `rings` is writable and as long as is said.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut rings).cast(), size_of::<u64>()) };
    }
}

impl AsFd for EventBell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sleeps until one of `descriptors` is readable (or broken), at most `limit`, for ever without
/// one; says which are. Wakes early now and then, and says that none is.
pub fn wait_readable<const N: usize>(
    descriptors: [BorrowedFd<'_>; N],
    limit: Option<Duration>,
) -> [bool; N] {
    let watch =
        |fd: BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut watched = descriptors.map(watch);
    let limit = limit.map(crate::timespec);
    let limit = limit.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    let count = N as libc::nfds_t;
    // SAFETY: `watched` is an array of `count` entries, `limit` null or a live timespec, and no
    // set of signals is given.
    let found = unsafe { libc::ppoll(watched.as_mut_ptr(), count, limit, core::ptr::null()) };
    watched.map(|watched| found > 0 && watched.revents != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_is_heard_until_it_is_hushed() {
        let (bell, silent) = (EventBell::new(true).unwrap(), EventBell::new(false).unwrap());
        let heard = || wait_readable([silent.as_fd(), bell.as_fd()], Some(Duration::ZERO));
        assert_eq!(heard(), [false, true]);
        bell.hush();
        bell.hush();
        assert_eq!(heard(), [false, false]);
        bell.ring();
        bell.ring();
        assert_eq!(heard(), [false, true]);
        bell.hush();
        assert_eq!(heard(), [false, false]);
    }

    #[test]
    fn ringing_ends_a_sleep_without_limit() {
        let bell = EventBell::new(false).unwrap();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| while wait_readable([bell.as_fd()], None) != [true] {});
            bell.ring();
            sleeper.join().unwrap();
        });
    }
}
