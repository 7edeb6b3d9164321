//! Events that a thread waits for beside its sockets: eventfd(2), and poll(2).

mod armed;
#[cfg(not(loom))]
mod eventfd;
#[cfg(loom)]
mod model;

pub use self::armed::ArmedEvent;
#[cfg(not(loom))]
pub use self::eventfd::EventFd;
#[cfg(loom)]
pub use self::model::EventFd;

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Sleeps until one of `descriptors` is readable or broken, at most `limit`, without end for
/// `None`; returns which are. May wake early, and return that none is.
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_bell_is_heard_until_it_is_hushed() {
        let (bell, silent) = (EventFd::new(true).unwrap(), EventFd::new(false).unwrap());
        let heard = || wait_readable([silent.as_fd(), bell.as_fd()], Some(Duration::ZERO));
        assert_eq!(heard(), [false, true]);
        bell.clear();
        bell.clear();
        assert_eq!(heard(), [false, false]);
        bell.signal();
        bell.signal();
        assert_eq!(heard(), [false, true]);
        bell.clear();
        assert_eq!(heard(), [false, false]);
    }

    #[test]
    fn ringing_ends_a_sleep_without_limit() {
        let bell = EventFd::new(false).unwrap();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| bell.wait(None));
            bell.signal();
            sleeper.join().unwrap();
        });
    }
}
