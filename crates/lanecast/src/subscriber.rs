//! The subscriber of an application, over any transport.

use crate::both::subscriber::BothSubscriber;
use crate::delegate::delegate;
use crate::messages::Messages;
use crate::run::AnyRun;
use lanecast_base::WaitStrategy;
use lanecast_transport::{Event, Subscribe};
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A subscriber to all present and future publishers of its topics, over the transports of its
/// context. A publisher reachable by two of them is received once, over the shorter one.
pub struct Subscriber {
    inner: Inner,
}

enum Inner {
    Shm(lanecast_shm::Subscriber),
    Net(lanecast_net::Subscriber),
    Both(Box<BothSubscriber>),
}

impl Subscriber {
    pub(crate) fn over_both(
        near: lanecast_shm::Subscriber,
        far: lanecast_net::Subscriber,
        wait: WaitStrategy,
    ) -> Self {
        Self { inner: Inner::Both(Box::new(BothSubscriber::new(near, far, wait))) }
    }

    /// Rejoins the sessions in shared memory that evicted this subscriber, at their live edge, with
    /// a new `Joined` event for each stream. The network transports rejoin without a call.
    pub fn rejoin(&mut self) {
        match &mut self.inner {
            Inner::Shm(subscriber) => subscriber.rejoin(),
            Inner::Net(_) => {}
            Inner::Both(subscriber) => subscriber.rejoin(),
        }
    }

    /// The messages as a blocking iterator, for programs that read one topic and do nothing else.
    ///
    /// [`poll`](Subscribe::poll) reads messages in place, reports publishers that come and go, and
    /// lets one thread serve several subscribers.
    ///
    /// ```
    /// use lanecast::prelude::*;
    /// # let directory = std::env::temp_dir();
    /// # let directory = directory.join(format!("lanecast-items-{}", std::process::id()));
    /// # let context = Context::builder().set("shm.directory", directory.display())?.build()?;
    ///
    /// let subscriber = context.subscriber("hello")?;
    /// let mut publisher = context.publisher("hello")?;
    /// assert!(publisher.wait_for_subscribers(1, std::time::Duration::from_secs(5)));
    /// publisher.send(b"Hello, world")?;
    /// drop(publisher); // closes the stream, which ends the loop
    ///
    /// for message in subscriber.messages() {
    ///     assert_eq!(message?, b"Hello, world");
    /// }
    /// # std::fs::remove_dir_all(directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn messages(self) -> Messages<Self> {
        Messages::new(self)
    }
}

impl From<lanecast_shm::Subscriber> for Subscriber {
    fn from(subscriber: lanecast_shm::Subscriber) -> Self {
        Self { inner: Inner::Shm(subscriber) }
    }
}

impl From<lanecast_net::Subscriber> for Subscriber {
    fn from(subscriber: lanecast_net::Subscriber) -> Self {
        Self { inner: Inner::Net(subscriber) }
    }
}

impl Subscribe for Subscriber {
    type Run<'a> = AnyRun<'a>;

    #[inline]
    fn take(&mut self, limit: usize) -> AnyRun<'_> {
        match &mut self.inner {
            Inner::Shm(subscriber) => subscriber.take(limit).into(),
            Inner::Net(subscriber) => subscriber.take(limit).into(),
            Inner::Both(subscriber) => subscriber.take(limit),
        }
    }

    #[inline]
    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, handler: F) -> usize {
        delegate!(&mut self.inner, Inner, it => it.poll(limit, handler))
    }

    #[inline]
    fn wait_at_most(&mut self, work: usize, limit: Duration) {
        delegate!(&mut self.inner, Inner, it => it.wait_at_most(work, limit))
    }

    fn longest_wait(&self) -> Duration {
        delegate!(&self.inner, Inner, it => it.longest_wait())
    }

    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        delegate!(&mut self.inner, Inner, it => it.wakeup())
    }

    fn streams(&self) -> usize {
        delegate!(&self.inner, Inner, it => it.streams())
    }
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("streams", &self.streams()).finish_non_exhaustive()
    }
}
