//! A subscriber's descriptor for event loops: an epoll set over its event, its sockets and a timer.
//!
//! Owned by the subscriber, and changed by its polls. Readable when one of the three is: the
//! conductor has signalled the event, a socket has something to read, or the sessions' deadline is
//! due. A message wakes the loop without another thread in between.
//!
//! Heartbeats and deadlines wake it as well. A loop that they have woken a few times in a row, with
//! no event among them, is idle: the conductor reads for it until the next event.

use crate::poller::Descriptor;
use lanecast_os::epoll::Epoll;
use lanecast_os::timerfd::TimerFd;
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// The kernel's clock may run so much faster than ours until the timer expires: it is set anew if
/// it is due so soon, as it may have expired before our deadline.
const MARGIN: Nanos = MILLISECOND;
/// The longest setting of the timer: clocks drift apart by less than [`MARGIN`] meanwhile.
const TIMER_MAX: Nanos = SECOND;
/// Wake-ups in a row without an event after which a loop counts as idle: about a quarter of a
/// second of heartbeats and deadlines.
const IDLE_WAKEUPS: u32 = 8;

/// The descriptor, and the state of the sessions for which it stands.
#[derive(Debug)]
pub(crate) struct WakeupSet {
    set: Epoll,
    timer: TimerFd,
    /// Time for which the timer is set.
    due: Nanos,
    /// The sockets in the set, kept open until they leave it: a closed one would stay if the
    /// process has forked, and could not be removed.
    sockets: Vec<Descriptor>,
    /// The sessions' count of changes when the sockets and the deadline were copied.
    changes: u64,
    /// Wake-ups since the last event.
    idle_wakeups: u32,
}

impl WakeupSet {
    /// A set with `event` alone.
    ///
    /// # Errors
    /// If the process has no free descriptor.
    pub(crate) fn new(event: BorrowedFd<'_>) -> io::Result<Self> {
        let (set, timer) = (Epoll::new()?, TimerFd::new()?);
        set.add(event, 0)?;
        set.add(timer.as_fd(), 0)?;
        Ok(Self { set, timer, due: 0, sockets: Vec::new(), changes: 0, idle_wakeups: 0 })
    }

    /// There were events: the loop is not idle.
    pub(crate) const fn on_events(&mut self) {
        self.idle_wakeups = 0;
    }

    /// The loop has polled at `now` without an event; returns whether it is idle.
    ///
    /// Only what wakes a loop that sleeps counts: something that it `has_read`, or a deadline. One
    /// that polls without sleeping is as far from idle after any number of polls.
    pub(crate) fn on_idle_poll(&mut self, now: Nanos, has_read: bool) -> bool {
        if has_read || now >= self.due {
            self.idle_wakeups = self.idle_wakeups.saturating_add(1);
        }
        self.is_idle()
    }

    pub(crate) const fn is_idle(&self) -> bool {
        self.idle_wakeups >= IDLE_WAKEUPS
    }

    /// Watches the event alone from here on.
    pub(crate) fn pause(&mut self) {
        // Those in the set can be removed.
        drop(self.replace(&[]));
        self.timer.stop();
        self.due = 0;
    }

    /// Whether the sessions still have the sockets and the deadline that were copied last.
    pub(crate) const fn has_seen(&self, changes: u64) -> bool {
        self.changes == changes
    }

    /// Whether the timer is still right.
    pub(crate) const fn is_set(&self, now: Nanos) -> bool {
        now.saturating_add(MARGIN) < self.due
    }

    /// Watches `sockets`, and no others, until `deadline`. False if it cannot: one of them waits
    /// for room to write, or the system has no room for them. It watches the event alone then.
    pub(crate) fn watch(
        &mut self,
        sockets: Vec<(Descriptor, bool)>,
        (now, deadline): (Nanos, Nanos),
        changes: u64,
    ) -> bool {
        self.changes = changes;
        let is_ready = sockets.iter().all(|(_, waits_for_room)| !waits_for_room);
        let sockets: Vec<_> = sockets.into_iter().map(|(socket, _)| socket).collect();
        let is_complete = is_ready && self.replace(&sockets).is_ok();
        if is_complete {
            self.set_timer(now, deadline);
        } else {
            self.pause();
        }
        is_complete
    }

    fn replace(&mut self, sockets: &[Descriptor]) -> io::Result<()> {
        let is_in = |set: &[Descriptor], socket: &Descriptor| {
            set.iter().any(|other| Arc::ptr_eq(other, socket))
        };
        for gone in self.sockets.extract_if(.., |socket| !is_in(sockets, socket)) {
            self.set.remove(gone.as_fd())?;
        }
        for socket in sockets {
            if !is_in(&self.sockets, socket) {
                self.set.add(socket.as_fd(), 0)?;
                self.sockets.push(socket.clone());
            }
        }
        Ok(())
    }

    /// An earlier setting stays: most deadlines move away before they are due, and a system call
    /// for each would cost more than a wake-up now and then.
    fn set_timer(&mut self, now: Nanos, deadline: Nanos) {
        let deadline = deadline.clamp(now, now.saturating_add(TIMER_MAX));
        if deadline < self.due || self.due <= now.saturating_add(MARGIN) {
            // Also makes an expired timer unreadable.
            self.timer.set(Duration::from_nanos(deadline - now));
            self.due = deadline;
        }
    }
}

impl AsFd for WakeupSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_os::event::{EventFd, wait_readable};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    const LIMIT: Duration = Duration::from_secs(60);

    fn is_readable(set: &WakeupSet, limit: Duration) -> bool {
        wait_readable([set.as_fd()], Some(limit)) == [true]
    }

    /// A socket that is readable.
    fn readable() -> (Descriptor, bool) {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        TcpStream::connect(socket.local_addr().unwrap()).unwrap();
        (Arc::new(socket), false)
    }

    #[test]
    fn each_of_its_parts_makes_it_readable() {
        let event = EventFd::new(false).unwrap();
        let mut set = WakeupSet::new(event.as_fd()).unwrap();
        assert!(!set.is_set(0), "before the first sockets");
        let (now, never) = (1_000 * SECOND, Nanos::MAX);
        assert!(set.watch(vec![], (now, never), 1));
        assert!(set.has_seen(1) && !set.has_seen(2));
        assert!(set.is_set(now) && !set.is_set(now + SECOND));
        assert!(!is_readable(&set, Duration::ZERO));
        event.signal();
        assert!(is_readable(&set, Duration::ZERO));
        event.clear();

        let sockets = [readable(), readable()];
        assert!(set.watch(sockets.to_vec(), (now, never), 2));
        assert!(is_readable(&set, LIMIT));
        assert!(set.watch(sockets[..1].to_vec(), (now, never), 3));
        assert!(is_readable(&set, Duration::ZERO));
        assert!(set.watch(vec![], (now, never), 4));
        assert!(!is_readable(&set, Duration::ZERO), "neither is watched any more");

        assert!(set.watch(vec![], (now, now + MILLISECOND), 5));
        assert!(is_readable(&set, LIMIT));
        assert!(set.watch(vec![], (now + MILLISECOND, never), 6));
        assert!(!is_readable(&set, Duration::ZERO), "the deadline has passed");

        let [first, second] = sockets;
        let watched = Arc::downgrade(&first.0);
        assert!(set.watch(vec![first, second.clone()], (now, never), 7));
        assert!(set.watch(vec![second, readable()], (now, now), 8));
        assert!(watched.upgrade().is_none(), "one that has left is closed");
        set.pause();
        assert!(!is_readable(&set, Duration::ZERO), "neither sockets nor the timer");
        event.signal();
        assert!(is_readable(&set, Duration::ZERO));
    }

    #[test]
    fn a_loop_is_idle_after_some_wake_ups_without_events() {
        let event = EventFd::new(false).unwrap();
        let mut set = WakeupSet::new(event.as_fd()).unwrap();
        for _ in 0..2 {
            assert!((1..IDLE_WAKEUPS).all(|_| !set.on_idle_poll(0, true)));
            assert!(set.on_idle_poll(0, true) && set.is_idle());
            set.on_events();
            assert!(!set.is_idle());
        }
    }

    /// The deadline is watched for anew with each poll of the last millisecond before it.
    #[test]
    fn a_loop_that_polls_without_sleeping_is_idle_after_as_many_deadlines() {
        let event = EventFd::new(false).unwrap();
        let mut set = WakeupSet::new(event.as_fd()).unwrap();
        let (mut now, mut deadlines) = (1_000 * SECOND, 0);
        assert!(set.watch(vec![], (now, now + SECOND), 1));
        while !set.is_idle() {
            let due = set.due;
            deadlines += u32::from(now >= due);
            set.on_idle_poll(now, false);
            let next = if now >= due { now + 10 * MILLISECOND } else { due };
            assert!(set.watch(vec![], (now, next), 1));
            now += MILLISECOND / 100;
        }
        assert_eq!(deadlines, IDLE_WAKEUPS);
    }

    #[test]
    fn sockets_that_wait_for_room_are_left_to_another() {
        let event = EventFd::new(false).unwrap();
        let mut set = WakeupSet::new(event.as_fd()).unwrap();
        let mut sockets = vec![readable(), readable()];
        let times = (1_000 * SECOND, Nanos::MAX);
        assert!(set.watch(sockets.clone(), times, 1));
        sockets[1].1 = true;
        assert!(!set.watch(sockets, times, 2));
        assert!(!is_readable(&set, Duration::ZERO), "none of them is watched");
    }
}
