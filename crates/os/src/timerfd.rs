//! A timer with a descriptor that becomes readable when it expires: timerfd(2).

use crate::{checked, timespec};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A timer that wakes a thread asleep on descriptors. Setting it is a short system call, and wakes
/// no thread before it expires.
#[derive(Debug)]
pub struct TimerFd(OwnedFd);

impl TimerFd {
    /// A timer that is not set.
    ///
    /// # Errors
    /// If the process has no free descriptor.
    pub fn new() -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: timerfd_create takes no pointers.
        let fd = checked(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        // SAFETY: the system has given this new descriptor to us alone.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Expires once, `after` from now; replaces the previous setting.
    pub fn set(&self, after: Duration) {
        self.replace(after.max(Duration::from_nanos(1)));
    }

    /// Neither expires nor is readable until it is set again.
    pub fn stop(&self) {
        self.replace(Duration::ZERO);
    }

    /// Expires after `value`, never for zero.
    fn replace(&self, value: Duration) {
        let (value, once) = (timespec(value), timespec(Duration::ZERO));
        let when = libc::itimerspec { it_interval: once, it_value: value };
        // It cannot fail: the descriptor is a timer's, and the time is valid.
        // SAFETY: `when` is readable, and no old setting is asked for.
        unsafe {
            libc::timerfd_settime(self.0.as_raw_fd(), 0, &raw const when, core::ptr::null_mut());
        }
    }

    /// Makes the descriptor unreadable until the timer expires again.
    pub fn clear(&self) {
        let mut times = 0_u64;
        // It fails only if the timer has not expired.
        // SAFETY: `times` is writable for the given length.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut times).cast(), size_of::<u64>()) };
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::event::wait_readable;

    #[test]
    fn a_timer_expires_once_per_setting() {
        let timerfd = TimerFd::new().unwrap();
        let goes_off = |limit| wait_readable([timerfd.as_fd()], Some(limit)) == [true];
        assert!(!goes_off(Duration::ZERO));
        for after in [Duration::ZERO, Duration::from_micros(50)] {
            timerfd.set(after);
            assert!(goes_off(Duration::from_secs(60)));
            timerfd.clear();
            assert!(!goes_off(Duration::ZERO));
        }
        timerfd.set(Duration::ZERO);
        assert!(goes_off(Duration::from_secs(60)));
        timerfd.stop();
        assert!(!goes_off(Duration::ZERO));
        timerfd.set(Duration::from_secs(3600));
        assert!(!goes_off(Duration::ZERO));
        timerfd.set(Duration::from_micros(1));
        assert!(goes_off(Duration::from_secs(60)), "the last setting counts");
    }
}
