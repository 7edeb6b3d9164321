//! A network subscriber: the owner of its receiving sessions.
//!
//! [`Subscriber::poll`] runs in the application's thread: it fills the delivery queue from one
//! read of the sockets, and calls the handler with messages that lie in the read buffer.

#[cfg(test)]
mod tests;

use crate::conductor_handle::ConductorHandle;
use crate::counters::SubscriberCounters;
use crate::delivery_queue::DeliveryQueue;
use crate::gap::GapReport;
use crate::owner_state::{OwnerState, SocketReader};
use crate::poller::Poller;
use crate::run::{NetRun, PollGuard};
use crate::sessions_end::SessionsEnd;
use crate::wakeup_set::WakeupSet;
use lanecast_base::clock::Clock;
use lanecast_base::{WaitStep, Waiter, spin};
use lanecast_protocol::Nanos;
use lanecast_transport::{Event, Subscribe};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// The longest sleep of a wait.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// A subscriber over the network: to all publishers of its topics, present and future.
pub struct Subscriber {
    sessions: SessionsEnd,
    queue: DeliveryQueue,
    conductor: Arc<ConductorHandle>,
    number: u64,
    owner_state: Arc<OwnerState>,
    clock: Clock,
    waiter: Waiter,
    poller: Poller,
    /// The conductor's wake epoch when the queue was last filled.
    wake_epoch: u32,
    /// Only threads in the background read the sockets.
    background: bool,
    /// The descriptor, once the program has asked for it.
    wakeup: Option<WakeupSet>,
    /// The end of the last read of the sockets.
    read: LastRead,
    /// The next read looks into all sockets: any of them may have ended a sleep.
    has_slept: bool,
}

/// The end of a subscriber's last read of its sockets.
#[derive(Clone, Copy, Debug, Default)]
struct LastRead {
    at: Nanos,
    /// Something was read: there may be more.
    may_have_more: bool,
    /// The sessions' count of changes.
    changes: u64,
}

impl Subscriber {
    pub(crate) fn new(
        sessions: SessionsEnd,
        conductor: Arc<ConductorHandle>,
        number: u64,
        owner_state: Arc<OwnerState>,
    ) -> Self {
        let settings = &conductor.context.settings;
        let background = settings.receives_in_background();
        let waiter = Waiter::new(settings.subscriber_wait);
        Self {
            sessions,
            queue: DeliveryQueue::new(),
            conductor,
            number,
            owner_state,
            clock: Clock::host(),
            waiter,
            poller: Poller::default(),
            wake_epoch: 0,
            background,
            wakeup: None,
            read: LastRead::default(),
            has_slept: false,
        }
    }

    fn now(&self) -> Nanos {
        self.clock.ns(self.clock.ticks())
    }

    /// Counters over all sessions, ended ones included.
    pub fn counters(&mut self) -> SubscriberCounters {
        self.sessions.counters()
    }

    /// The oldest unread report about missing datagrams: noticed, recovered, or given up.
    ///
    /// Reports are kept from the first call on, and cost nothing before. The newest 1,024 are
    /// kept; the [counters](Self::counters) count all.
    pub fn next_gap(&mut self) -> Option<GapReport> {
        let now = self.now();
        self.sessions.next_gap(now)
    }

    /// Sets a function that the background thread calls when it has received something, for an
    /// application that sleeps on something else. The first one set stays.
    pub fn set_waker(&self, waker: impl Fn() + Send + Sync + 'static) {
        self.owner_state.set_waker(waker);
    }

    /// Runs `sleep` while the background thread receives, and calls the
    /// [waker](Self::set_waker) when something comes. Returns at once if something has come since
    /// the last poll.
    pub fn sleep_in_background(&mut self, sleep: impl FnOnce()) {
        // The caller may have seen the waker's call already, in a poll of what else it reads: its
        // sleep would not end. A later call of the waker ends it.
        if !self.queue.is_empty() || self.owner_state.wake_epoch() != self.wake_epoch {
            return;
        }
        // Receive threads serve the sockets at any time.
        if self.sessions.is_served() {
            return sleep();
        }
        let has_polled = self.owner_state.reader() == SocketReader::Polls;
        self.leave_to_conductor();
        sleep();
        // A descriptor that is armed already is not armed again by the next poll: the conductor
        // reads on for it.
        if has_polled {
            self.owner_state.set_reader(SocketReader::Polls);
        }
    }

    /// Whether [`take`](Subscribe::take) would find events now. Reads the sockets if it must.
    #[inline]
    pub fn has_events(&mut self) -> bool {
        if self.queue.is_empty() {
            self.refill();
        }
        let has_events = !self.queue.is_empty();
        if self.wakeup.is_some() {
            self.update_wakeup(usize::from(has_events));
        }
        has_events
    }

    /// The conductor reads the sockets from here on.
    fn leave_to_conductor(&self) {
        // The state before the wake-up: the conductor looks at it when it runs.
        self.owner_state.set_reader(SocketReader::Conductor);
        self.conductor.receiver_waker.wake();
    }

    #[inline]
    fn refill(&mut self) {
        let wake_epoch = self.owner_state.wake_epoch();
        // Without news from the conductor there is nothing to lock the sessions for.
        if self.background && wake_epoch == self.wake_epoch {
            return;
        }
        // Read before the queue is filled: a notification in between leads to one more look.
        self.wake_epoch = wake_epoch;
        let now = self.now();
        let all = self.wakeup.is_some() || std::mem::take(&mut self.has_slept);
        let (may_have_more, changes) = self.sessions.refill(now, &mut self.queue, all);
        self.read = LastRead { at: now, may_have_more, changes };
    }

    /// Sleeps until a socket is readable or the conductor wakes the owner.
    #[cold]
    fn sleep(&mut self, limit: Duration) {
        // A run that was dropped has left events.
        if !self.queue.is_empty() {
            return;
        }
        // Before the check of the epoch below: a notification from now on sets the event.
        self.owner_state.set_parked(true);
        let mut descriptors = Vec::new();
        let deadline =
            if self.background { Nanos::MAX } else { self.sessions.descriptors(&mut descriptors) };
        // A notification from before the flag was visible has not set the event.
        if self.owner_state.wake_epoch() == self.wake_epoch {
            let due = Duration::from_nanos(deadline.saturating_sub(self.now()));
            let limit = limit.min(due).min(LONGEST_WAIT);
            let event = [self.owner_state.event.as_fd()];
            self.poller.sleep_with_wakers(&event, &descriptors, Some(limit));
        }
        self.has_slept = true;
        self.owner_state.event.clear();
        self.owner_state.set_parked(false);
        if self.owner_state.reader() == SocketReader::Conductor {
            // It left the sockets to this sleep; an armed descriptor needs it again.
            self.conductor.receiver_waker.wake();
        }
    }

    /// Ends a poll of a subscriber with a descriptor: after an empty one, arms the event and
    /// watches the sockets; after others, leaves the descriptor readable.
    #[cold]
    fn update_wakeup(&mut self, work: usize) {
        let (Some(event), Some(set)) = (self.owner_state.wakeup(), &mut self.wakeup) else {
            return;
        };
        if work > 0 || !self.queue.is_empty() {
            event.notify();
            set.on_events();
            self.owner_state.set_reader(SocketReader::Polls);
            return;
        }
        let LastRead { at, may_have_more, changes } = self.read;
        let is_covered = self.background
            || self.sessions.is_served()
            || !may_have_more
                && match self.owner_state.reader() {
                    SocketReader::Polls => false,
                    SocketReader::Descriptor => set.has_seen(changes) && set.is_set(at),
                    SocketReader::Conductor => set.has_seen(changes) || set.is_idle(),
                };
        if !event.is_armed() {
            event.clear_and_arm();
        } else if is_covered {
            return;
        }
        if !is_covered {
            self.watch();
        }
        // Deliveries from before the event was armed have not signalled it.
        if let Some(event) = self.owner_state.wakeup()
            && self.owner_state.wake_epoch() != self.wake_epoch
        {
            event.notify();
        }
    }

    /// Has the descriptor watch the sockets and the deadline, or leaves them to the conductor.
    fn watch(&mut self) {
        let (Some(event), Some(set)) = (self.owner_state.wakeup(), &mut self.wakeup) else {
            return;
        };
        let LastRead { at, may_have_more, .. } = self.read;
        // Before the lock under which sockets and deadline are copied.
        self.owner_state.set_reader(SocketReader::Descriptor);
        // Before the set watches for the next deadline.
        let is_idle = set.on_idle_poll(at, may_have_more);
        let queue = (&mut self.queue, may_have_more);
        let (may_have_more, is_watched) = self.sessions.refill_and_watch(at, queue, set);
        // Both are left to the next poll.
        if may_have_more || !self.queue.is_empty() {
            event.notify();
        }
        let is_idle = is_idle && self.queue.is_empty();
        if is_idle {
            set.pause();
        }
        if is_idle || !is_watched {
            self.leave_to_conductor();
        }
    }

    #[inline]
    fn poll_queue<F: FnMut(Event<'_>)>(&mut self, limit: usize, mut handler: F) -> usize {
        if self.queue.is_empty() {
            self.refill();
        }
        // No guard without deliveries: an idle poll reports nothing.
        if self.queue.is_empty() || limit == 0 {
            return 0;
        }
        let Self { sessions, queue, clock, .. } = self;
        // The sessions are not locked while the handler runs: the conductor may receive meanwhile.
        let guard = PollGuard { sessions, queue, clock, delivered: true };
        let mut delivered = 0;
        while delivered < limit && !guard.queue.is_empty() {
            delivered += guard.queue.deliver(limit - delivered, &mut handler);
        }
        delivered
    }
}

impl Subscribe for Subscriber {
    type Run<'a> = NetRun<'a>;

    #[inline]
    fn take(&mut self, limit: usize) -> NetRun<'_> {
        self.has_events();
        let Self { sessions, queue, clock, .. } = self;
        NetRun::new(PollGuard { sessions, queue, clock, delivered: false }, limit)
    }

    #[inline]
    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, handler: F) -> usize {
        let work = self.poll_queue(limit, handler);
        if self.wakeup.is_some() {
            self.update_wakeup(work);
        }
        work
    }

    fn wait_at_most(&mut self, work: usize, limit: Duration) {
        if work > 0 {
            self.waiter.found(work);
            return;
        }
        match self.waiter.next_step() {
            WaitStep::Spin(pauses) => spin(pauses),
            WaitStep::Yield => std::thread::yield_now(),
            WaitStep::Park => self.sleep(limit),
        }
    }

    fn longest_wait(&self) -> Duration {
        LONGEST_WAIT
    }

    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        let event = self.owner_state.open_wakeup()?;
        let set = match self.wakeup.take() {
            Some(set) => set,
            None => WakeupSet::new(event.as_fd())?,
        };
        let set: &WakeupSet = self.wakeup.insert(set);
        Ok(set.as_fd())
    }

    fn streams(&self) -> usize {
        self.queue.streams()
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let now = self.now();
        // Told at once: publishers would wait for this receiver until it counts as dead.
        self.sessions.leave(now);
        self.conductor.remove_subscriber(self.number);
    }
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("streams", &self.streams()).finish_non_exhaustive()
    }
}
