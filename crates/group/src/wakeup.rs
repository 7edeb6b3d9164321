//! One descriptor for all that a member waits for: frames, its own times, and crashes.

use crate::watch::Watch;
use lanecast_membership::Nanos;
use lanecast_os::epoll::Epoll;
use lanecast_os::timerfd::TimerFd;
use lanecast_transport::Subscribe;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// The descriptor of a group in an event loop.
#[derive(Debug)]
pub(crate) struct Wakeup {
    set: Epoll,
    timer: TimerFd,
    /// The time that the timer is set to; 0: at once.
    set_to: Nanos,
}

impl Wakeup {
    pub(crate) fn new(subscriber: &mut impl Subscribe, watch: Option<&Watch>) -> io::Result<Self> {
        let (set, timer) = (Epoll::new()?, TimerFd::new()?);
        set.add(subscriber.wakeup()?, 0)?;
        set.add(timer.as_fd(), 1)?;
        if let Some(watch) = watch {
            set.add(watch.descriptor(), 2)?;
        }
        Ok(Self { set, timer, set_to: 0 })
    }

    /// Adds the subscriber that replaces the former one, whose descriptor is closed.
    pub(crate) fn replace(&self, subscriber: &mut impl Subscribe) -> io::Result<()> {
        self.set.add(subscriber.wakeup()?, 0)
    }

    /// Makes the descriptor readable at `due`.
    pub(crate) fn set(&mut self, now: Nanos, due: Nanos) {
        if due <= now {
            // Due already: readable at once, and again until a poll has done it.
            self.timer.set(Duration::from_nanos(1));
            self.set_to = 0;
        } else if due != self.set_to {
            self.timer.clear();
            self.timer.set(Duration::from_nanos(due - now));
            self.set_to = due;
        }
    }

    /// Makes the descriptor readable at `due`, if that is sooner than so far.
    #[inline]
    pub(crate) fn bring_forward(&mut self, now: Nanos, due: Nanos) {
        if due < self.set_to {
            self.set(now, due);
        }
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}
