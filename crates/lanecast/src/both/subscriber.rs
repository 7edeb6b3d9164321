//! A subscriber to publishers on this host and on others.
//!
//! A publisher in reach of shared memory is not received from the network as well: the network
//! transport ignores advertisements from its own domain.

use crate::both::wakeup::BothWakeup;
use crate::run::AnyRun;
use crate::{net, shm};
use lanecast_base::{WaitStep, WaitStrategy, Waiter, spin};
use lanecast_transport::{Event, Subscribe};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Subscribers over shared memory and the network.
#[derive(Debug)]
pub(crate) struct BothSubscriber {
    near: shm::Subscriber,
    far: net::Subscriber,
    /// Whether the network is polled first; alternates, so that neither starves the other.
    far_first: bool,
    waiter: Waiter,
    wakeup: BothWakeup,
}

impl BothSubscriber {
    pub(crate) fn new(near: shm::Subscriber, far: net::Subscriber, wait: WaitStrategy) -> Self {
        far.set_waker(near.waker());
        Self {
            near,
            far,
            far_first: false,
            waiter: Waiter::new(wait),
            wakeup: BothWakeup::default(),
        }
    }

    pub(crate) fn rejoin(&mut self) {
        self.near.rejoin();
    }
}

impl Subscribe for BothSubscriber {
    type Run<'a> = AnyRun<'a>;

    /// Takes from one of the two: in turn, as long as both have events.
    #[inline]
    fn take(&mut self, limit: usize) -> AnyRun<'_> {
        self.far_first = !self.far_first;
        let far = if self.far_first { self.far.has_events() } else { !self.near.has_events() };
        if far { self.far.take(limit).into() } else { self.near.take(limit).into() }
    }

    #[inline]
    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, mut handler: F) -> usize {
        self.far_first = !self.far_first;
        let mut work = 0;
        for far in [self.far_first, !self.far_first] {
            let left = limit.saturating_sub(work);
            work += match (left, far) {
                (0, _) => 0,
                (_, true) => self.far.poll(left, &mut handler),
                (_, false) => self.near.poll(left, &mut handler),
            };
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
            // Sleep on the futex in shared memory; the network's conductor wakes it too.
            WaitStep::Park => self.far.sleep_in_background(|| self.near.sleep(limit)),
        }
    }

    fn longest_wait(&self) -> Duration {
        self.near.longest_wait()
    }

    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        self.wakeup.open(self.near.wakeup(), self.far.wakeup())
    }

    fn streams(&self) -> usize {
        self.near.streams() + self.far.streams()
    }
}
