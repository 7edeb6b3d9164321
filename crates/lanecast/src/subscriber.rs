//! The reading side, whatever way the messages take.

mod both;

use crate::{net, shm};
use both::Both;
use lanecast_base::WaitStrategy;
use lanecast_transport::{Event, Subscribe};
use std::fmt;
use std::time::Duration;

/// A subscriber: to all publishers of its topics, now and later.
///
/// Over the ways that its context was made with: what they are makes no difference to its calls.
/// A publisher that it could hear over two is heard over the shorter one, and once.
pub struct Subscriber {
    way: Way,
}

enum Way {
    Shm(shm::Subscriber),
    Net(net::Subscriber),
    Both(Box<Both>),
}

impl Subscriber {
    pub(crate) fn over_both(
        near: shm::Subscriber,
        far: net::Subscriber,
        wait: WaitStrategy,
    ) -> Self {
        Self { way: Way::Both(Box::new(Both::new(near, far, wait))) }
    }

    /// Joins again the sessions in shared memory that evicted this subscriber, at their live
    /// edge: their streams are told as joined anew. On the network that needs no call.
    pub fn rejoin(&mut self) {
        match &mut self.way {
            Way::Shm(subscriber) => subscriber.rejoin(),
            Way::Net(_) => {}
            Way::Both(subscriber) => subscriber.rejoin(),
        }
    }
}

impl From<shm::Subscriber> for Subscriber {
    fn from(subscriber: shm::Subscriber) -> Self {
        Self { way: Way::Shm(subscriber) }
    }
}

impl From<net::Subscriber> for Subscriber {
    fn from(subscriber: net::Subscriber) -> Self {
        Self { way: Way::Net(subscriber) }
    }
}

impl Subscribe for Subscriber {
    #[inline]
    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, handler: F) -> usize {
        match &mut self.way {
            Way::Shm(subscriber) => subscriber.poll(limit, handler),
            Way::Net(subscriber) => subscriber.poll(limit, handler),
            Way::Both(subscriber) => subscriber.poll(limit, handler),
        }
    }

    #[inline]
    fn wait(&mut self, work: usize) {
        match &mut self.way {
            Way::Shm(subscriber) => subscriber.wait(work),
            Way::Net(subscriber) => subscriber.wait(work),
            Way::Both(subscriber) => subscriber.wait(work),
        }
    }

    fn longest_wait(&self) -> Duration {
        match &self.way {
            Way::Shm(subscriber) => subscriber.longest_wait(),
            Way::Net(subscriber) => subscriber.longest_wait(),
            Way::Both(subscriber) => subscriber.longest_wait(),
        }
    }

    fn streams(&self) -> usize {
        match &self.way {
            Way::Shm(subscriber) => subscriber.streams(),
            Way::Net(subscriber) => subscriber.streams(),
            Way::Both(subscriber) => subscriber.streams(),
        }
    }
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("streams", &self.streams()).finish_non_exhaustive()
    }
}
