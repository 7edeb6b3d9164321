//! A set of descriptors that is a descriptor itself: epoll(7), level-triggered.

use crate::checked;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// The most descriptors that one wait reports; the next wait reports the others.
const READY_MAX: usize = 64;

/// Descriptors to wait for until one is readable. The set is readable itself while one of them is.
///
/// A descriptor leaves the set when it is removed, or closed.
///
/// ```
/// use lanecast_os::{epoll::Epoll, event::EventFd};
/// use std::{os::fd::AsFd, time::Duration};
/// let (set, event, mut ready) = (Epoll::new()?, EventFd::new(true)?, Vec::new());
/// set.add(event.as_fd(), 7)?;
/// set.wait(Some(Duration::from_secs(1)), &mut ready)?;
/// assert_eq!(ready, [7]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    /// An empty set.
    ///
    /// # Errors
    /// If the process has no free descriptor.
    pub fn new() -> io::Result<Self> {
        // SAFETY: epoll_create1 takes no pointers.
        let fd = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the system has given this new descriptor to us alone.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Adds `descriptor`, which [`wait`](Self::wait) reports by `key` while it is readable or
    /// broken.
    ///
    /// # Errors
    /// If the set has it already, the system cannot wait for it (a file of a disk), or a limit is
    /// reached.
    pub fn add(&self, descriptor: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: key };
        let (set, fd) = (self.0.as_raw_fd(), descriptor.as_raw_fd());
        // SAFETY: `event` is readable, and both descriptors are open.
        checked(unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, fd, &raw mut event) })?;
        Ok(())
    }

    /// Removes `descriptor`.
    ///
    /// # Errors
    /// If the set does not have it.
    pub fn remove(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let (set, fd) = (self.0.as_raw_fd(), descriptor.as_raw_fd());
        let none = core::ptr::null_mut();
        // SAFETY: removing takes no event, and both descriptors are open.
        checked(unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_DEL, fd, none) })?;
        Ok(())
    }

    /// Sleeps until a descriptor is readable, at most `timeout` (rounded up to milliseconds),
    /// without end for `None`; puts the keys of the readable ones into `ready`. May wake early,
    /// with none.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn wait(&self, timeout: Option<Duration>, ready: &mut Vec<u64>) -> io::Result<()> {
        ready.clear();
        let timeout = timeout.map_or(-1, |timeout| {
            i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
        });
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; READY_MAX];
        let most = READY_MAX as i32;
        // SAFETY: `events` has room for `most` entries.
        let found =
            unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), most, timeout) };
        let found = match checked(found) {
            Ok(found) => found as usize,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        ready.extend(events[..found].iter().map(|event| event.u64));
        Ok(())
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::event::{EventFd, wait_readable};

    #[test]
    fn the_set_is_readable_while_one_of_its_descriptors_is() {
        let (inner, outer, mut ready) = (Epoll::new().unwrap(), Epoll::new().unwrap(), Vec::new());
        let events = [0, 1, 2].map(|_| EventFd::new(false).unwrap());
        for (event, key) in events.iter().zip(10..) {
            inner.add(event.as_fd(), key).unwrap();
        }
        outer.add(inner.as_fd(), 1).unwrap();
        let mut keys = |set: &Epoll| {
            set.wait(Some(Duration::ZERO), &mut ready).unwrap();
            ready.sort_unstable();
            ready.clone()
        };
        assert!(keys(&inner).is_empty());
        events[0].signal();
        events[2].signal();
        assert_eq!(keys(&inner), [10, 12]);
        assert_eq!(keys(&outer), [1]);
        assert_eq!(wait_readable([outer.as_fd()], Some(Duration::ZERO)), [true]);
        inner.remove(events[2].as_fd()).unwrap();
        assert!(inner.remove(events[2].as_fd()).is_err());
        events[0].clear();
        assert!(keys(&outer).is_empty(), "neither the cleared nor the removed one counts");
        let [_, open, _] = events;
        open.signal();
        assert_eq!(keys(&outer), [1]);
        drop(open);
        assert!(keys(&inner).is_empty(), "a closed descriptor has left");
    }
}
