//! Wakes the conductor: an event, a timer, and the flag that the conductor is parked.
//!
//! Owners of publishers and subscribers call it from their own threads; the conductor parks and
//! unparks. Without the flag each commit of a publisher would cost a system call.

use lanecast_base::sync::{AtomicBool, Ordering, fence};
use lanecast_os::event::EventFd;
use lanecast_os::timerfd::TimerFd;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Delay of [`ConductorWaker::wake_soon`]: long enough that the conductor does not disturb the
/// reply to what was just sent, short enough that the end of a stream is not late.
const GRACE: Duration = Duration::from_micros(150);

/// Wakes one conductor thread.
#[derive(Debug)]
pub(crate) struct ConductorWaker {
    event: EventFd,
    timer: TimerFd,
    /// The conductor sleeps until an event, rather than until its next round.
    is_parked: AtomicBool,
}

impl ConductorWaker {
    pub(crate) fn new() -> io::Result<Self> {
        let (event, timer) = (EventFd::new(false)?, TimerFd::new()?);
        Ok(Self { event, timer, is_parked: AtomicBool::new(false) })
    }

    /// Wakes the conductor now.
    pub(crate) fn wake(&self) {
        self.event.signal();
    }

    /// Wakes the conductor now if it is parked.
    #[inline]
    pub(crate) fn wake_if_parked(&self) {
        if self.take_parked() {
            self.event.signal();
        }
    }

    /// Wakes a parked conductor after [`GRACE`]: it has to serve the session if the owner stops
    /// calling.
    #[inline]
    pub(crate) fn wake_soon_if_parked(&self) {
        if self.take_parked() {
            self.wake_soon();
        }
    }

    /// Wakes the conductor after [`GRACE`].
    pub(crate) fn wake_soon(&self) {
        self.timer.set(GRACE);
    }

    /// Clears the parked flag; returns whether it was set. Only one caller gets true, and has to
    /// wake the conductor.
    #[inline]
    fn take_parked(&self) -> bool {
        // PAIRS(conductor-parked): the owner's change to the session comes before this load, as the
        // conductor's flag comes before its last check of the sessions.
        fence(Ordering::SeqCst);
        // The load alone comes first: the locked swap is only paid when the conductor is parked.
        self.is_parked.load(Ordering::Relaxed) && self.is_parked.swap(false, Ordering::Relaxed)
    }

    /// Announces that the conductor is about to sleep until an event.
    pub(crate) fn park(&self) {
        self.is_parked.store(true, Ordering::Relaxed);
        // PAIRS(conductor-parked): the flag comes before the check of the sessions that follows.
        fence(Ordering::SeqCst);
    }

    /// The conductor runs again; `event` and `timer` tell which of the
    /// [descriptors](Self::descriptors) have ended its sleep.
    pub(crate) fn unpark(&self, event: bool, timer: bool) {
        self.is_parked.store(false, Ordering::Relaxed);
        // Only those that are set: each clear is a system call.
        if event {
            self.event.clear();
        }
        if timer {
            self.timer.clear();
        }
    }

    /// The descriptors that wake the conductor.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.event.as_fd(), self.timer.as_fd()]
    }
}
