//! The publisher of an application, over any transport.

use crate::both::publisher::BothPublisher;
use crate::claim::{AnyBatch, AnyClaim};
use crate::delegate::{delegate, delegate_into};
use crate::error::{Error, TopicError};
use lanecast_net::NetTransport;
use lanecast_transport::{
    ClaimError, Completion, Publish, PublisherEvent, SessionId, TopicId, Transport,
};
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A publisher: one session, one or several topics, over the transports of its context.
pub struct Publisher {
    inner: Inner,
}

#[expect(clippy::large_enum_variant, reason = "a pointer less on the path of a message")]
enum Inner {
    Shm(lanecast_shm::Publisher),
    Net(lanecast_net::Publisher),
    Both(Box<BothPublisher>),
}

impl Publisher {
    pub(crate) fn over_both(
        domain: &lanecast_shm::Domain,
        network: &NetTransport,
        topic: &str,
    ) -> Result<Self, Error> {
        let near = domain.publisher(topic)?;
        let far = network.publisher_of(near.session(), topic)?;
        Ok(Self { inner: Inner::Both(Box::new(BothPublisher::new(near, far))) })
    }

    /// Sends published messages that are still held back for batching, which only the network
    /// transports do, for a short time.
    pub fn flush(&mut self) {
        match &mut self.inner {
            Inner::Shm(_) => {}
            Inner::Net(publisher) => publisher.flush(),
            Inner::Both(publisher) => publisher.flush(),
        }
    }

    /// Number of claims that found no room.
    pub fn back_pressured(&mut self) -> u64 {
        delegate!(&mut self.inner, Inner, it => it.back_pressured())
    }
}

impl From<lanecast_shm::Publisher> for Publisher {
    fn from(publisher: lanecast_shm::Publisher) -> Self {
        Self { inner: Inner::Shm(publisher) }
    }
}

impl From<lanecast_net::Publisher> for Publisher {
    fn from(publisher: lanecast_net::Publisher) -> Self {
        Self { inner: Inner::Net(publisher) }
    }
}

impl Publish for Publisher {
    type Claim<'a> = AnyClaim<'a>;
    type Batch<'a> = AnyBatch<'a>;
    type TopicError = TopicError;

    fn add_topic(&mut self, name: &str) -> Result<TopicId, TopicError> {
        Ok(delegate!(&mut self.inner, Inner, it => it.add_topic(name)?))
    }

    #[inline(always)]
    fn try_claim_on(&mut self, topic: TopicId, len: usize) -> Result<AnyClaim<'_>, ClaimError> {
        Ok(delegate_into!(&mut self.inner, Inner => AnyClaim, it => it.try_claim_on(topic, len)?))
    }

    #[inline(always)]
    fn claim_on(&mut self, topic: TopicId, len: usize) -> Result<AnyClaim<'_>, ClaimError> {
        Ok(delegate_into!(&mut self.inner, Inner => AnyClaim, it => it.claim_on(topic, len)?))
    }

    fn try_send_uncounted(&mut self, bytes: &[u8]) -> Result<(), ClaimError> {
        delegate!(&mut self.inner, Inner, it => it.try_send_uncounted(bytes))
    }

    fn batch(&mut self) -> AnyBatch<'_> {
        delegate_into!(&mut self.inner, Inner => AnyBatch, it => it.batch())
    }

    fn try_reserve(&mut self, count: usize, bytes: usize) -> Result<(), ClaimError> {
        delegate!(&mut self.inner, Inner, it => it.try_reserve(count, bytes))
    }

    fn pack(&mut self) {
        delegate!(&mut self.inner, Inner, it => it.pack());
    }

    fn send_packed(&mut self) {
        delegate!(&mut self.inner, Inner, it => it.send_packed());
    }

    fn keep_warm(&mut self) {
        delegate!(&mut self.inner, Inner, it => it.keep_warm());
    }

    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        delegate!(&mut self.inner, Inner, it => it.wakeup())
    }

    fn session(&self) -> SessionId {
        delegate!(&self.inner, Inner, it => it.session())
    }

    fn source(&self) -> &str {
        delegate!(&self.inner, Inner, it => it.source())
    }

    fn longest_message(&self) -> usize {
        delegate!(&self.inner, Inner, it => it.longest_message())
    }

    fn subscribers(&self) -> usize {
        delegate!(&self.inner, Inner, it => it.subscribers())
    }

    fn wait_for_subscribers(&mut self, count: usize, timeout: Duration) -> bool {
        delegate!(&mut self.inner, Inner, it => it.wait_for_subscribers(count, timeout))
    }

    fn poll_events(&mut self, handler: impl FnMut(PublisherEvent<'_>)) -> usize {
        delegate!(&mut self.inner, Inner, it => it.poll_events(handler))
    }

    fn drain(&mut self, timeout: Duration) -> Completion {
        delegate!(&mut self.inner, Inner, it => it.drain(timeout))
    }

    fn close(self, linger: Duration) -> Completion {
        delegate!(self.inner, Inner, it => it.close(linger))
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("source", &self.source()).finish_non_exhaustive()
    }
}
