//! The reading side.

use crate::counters::SubscriberCounters;
use crate::gap::GapReport;
use crate::hand::Hand;
use crate::inbound::Inbound;
use crate::network::Network;
use crate::presence::Presence;
use crate::settings::Drive;
use crate::watch::Watch;
use lanecast_base::clock::Clock;
use lanecast_base::{WaitStep, WaitStrategy, Waiter, spin};
use lanecast_os::biased::Owner;
use lanecast_protocol::Nanos;
use lanecast_transport::{Event, Subscribe};
use std::fmt;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// The longest sleep of a wait.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// A subscriber over the network: of all publishers of its topics, now and later.
pub struct Subscriber {
    owner: Owner<Inbound>,
    hand: Hand,
    network: Network,
    number: u64,
    presence: Arc<Presence>,
    clock: Clock,
    waiter: Waiter,
    watch: Watch,
    /// What the conductor's tidings were when the hand was last filled.
    tidings: u32,
    /// Whether only the conductor looks at the sockets.
    hands_off: bool,
}

impl Subscriber {
    pub(crate) fn new(
        owner: Owner<Inbound>,
        network: Network,
        number: u64,
        presence: Arc<Presence>,
        wait: WaitStrategy,
    ) -> Self {
        let hands_off = network.settings().drive != Drive::Caller;
        Self {
            owner,
            hand: Hand::new(),
            network,
            number,
            presence,
            clock: Clock::host(),
            waiter: Waiter::new(wait),
            watch: Watch::default(),
            tidings: 0,
            hands_off,
        }
    }

    /// What it has counted so far, over all its sessions.
    pub fn counters(&mut self) -> SubscriberCounters {
        self.owner.enter().counters()
    }

    /// The oldest report of missing datagrams that has not been fetched: that they are missing,
    /// that they have come, or that they were given up.
    ///
    /// Reports are kept from the first call on, and cost nothing before. Who asks too rarely
    /// misses the oldest of many hundreds; the [counters](Self::counters) miss nothing.
    pub fn next_gap(&mut self) -> Option<GapReport> {
        let now = self.clock.ns(self.clock.ticks());
        self.owner.enter().next_gap(now)
    }

    /// From now on `alarm` is called when something has come that the application's thread has not
    /// seen itself: for who sleeps on something else meanwhile.
    pub fn wake_by(&self, alarm: impl Fn() + Send + Sync + 'static) {
        self.presence.wake_by(alarm);
    }

    /// Does `sleep`, while the thread in the background looks after the sockets, and calls the
    /// alarm when something comes.
    pub fn sleep_elsewhere(&mut self, sleep: impl FnOnce()) {
        self.presence.set_aside(true);
        self.network.desk().finding.ring();
        sleep();
        self.presence.set_aside(false);
    }

    #[inline]
    fn refill(&mut self) {
        let tidings = self.presence.tidings();
        if self.hands_off && tidings == self.tidings {
            return;
        }
        self.tidings = tidings;
        let now = self.clock.ns(self.clock.ticks());
        self.owner.enter().refill(now, &mut self.hand);
    }

    /// Sleeps until something comes.
    #[cold]
    fn sleep(&mut self) {
        self.presence.set_waiting(true);
        let mut descriptors = Vec::new();
        let due = if self.hands_off {
            Nanos::MAX
        } else {
            let inbound = self.owner.enter();
            inbound.descriptors(&mut descriptors);
            inbound.next_deadline()
        };
        // What the conductor laid ready before it could see the mark rings no bell.
        if self.presence.tidings() == self.tidings {
            let now = self.clock.ns(self.clock.ticks());
            let limit = Duration::from_nanos(due.saturating_sub(now)).min(LONGEST_WAIT);
            let bell = [self.presence.bell.as_fd()];
            self.watch.sleep_beside(&bell, &descriptors, Some(limit));
        }
        self.presence.bell.hush();
        self.presence.set_waiting(false);
    }
}

/// One turn of the handler.
struct Turn<'a> {
    owner: &'a mut Owner<Inbound>,
    hand: &'a mut Hand,
    clock: &'a Clock,
}

impl Drop for Turn<'_> {
    /// Shows publishers what has been read, even if the handler has panicked: what it had in hand
    /// counts as read, and the publisher waits for that.
    #[inline]
    fn drop(&mut self) {
        // No second look at the sockets: an answer may be wanted first. But the application
        // may not come again for long, and the publisher waits for what it has read.
        let all = self.hand.items.is_empty();
        self.owner.enter().settle(self.clock.ns(self.clock.ticks()), all);
    }
}

impl Subscribe for Subscriber {
    #[inline]
    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, mut handler: F) -> usize {
        if self.hand.items.is_empty() {
            self.refill();
        }
        if self.hand.items.is_empty() || limit == 0 {
            return 0;
        }
        let Self { owner, hand, clock, .. } = self;
        let turn = Turn { owner, hand, clock };
        let mut done = 0;
        while done < limit && !turn.hand.items.is_empty() {
            let (messages, others) = turn.hand.deliver(limit - done, &mut handler);
            done += messages + others;
        }
        done
    }

    fn wait(&mut self, work: usize) {
        if work > 0 {
            self.waiter.found(work);
            return;
        }
        match self.waiter.next_step() {
            WaitStep::Spin(pauses) => spin(pauses),
            WaitStep::Yield => std::thread::yield_now(),
            WaitStep::Park => self.sleep(),
        }
    }

    fn longest_wait(&self) -> Duration {
        LONGEST_WAIT
    }

    fn streams(&self) -> usize {
        self.hand.streams()
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let now = self.clock.ns(self.clock.ticks());
        self.owner.enter().leave(now);
        self.network.desk().forget(self.number);
    }
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("streams", &self.streams()).finish_non_exhaustive()
    }
}
