//! A publisher whose messages stores keep.

use super::batch::StoreBackedBatch;
use super::claim::StoreBackedClaim;
use super::error::StoreBackedError;
use super::outgoing::OutgoingStreams;
use super::settings::{Shared, rest};
use lanecast_transport::{
    ClaimError, Completion, Publish, PublisherEvent, SessionId, TopicId, Transport,
};
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A publisher whose messages stores keep.
///
/// A claim is refused while the flight is full, and tells `Closed` when nothing of it got further
/// for the settings' patience.
pub struct StoreBackedPublisher<C: Transport> {
    streams: OutgoingStreams<C>,
    session: SessionId,
    source: String,
    has_settled: bool,
}

impl<C: Transport> StoreBackedPublisher<C> {
    /// Opens a publisher, and waits until the stores have accepted it.
    pub(super) fn open(
        carrier: C,
        topic: &str,
        shared: Arc<Shared>,
    ) -> Result<Self, StoreBackedError> {
        let mut streams = OutgoingStreams::new(carrier, shared);
        streams.open(topic)?;
        let below = streams.topics[0].1.publisher();
        let (session, source) = (below.session(), below.source().to_owned());
        Ok(Self { streams, session, source, has_settled: false })
    }

    /// Number of times that a message found no room, in flight or in the transport.
    pub const fn refusals(&self) -> u64 {
        self.streams.refusals()
    }
}

impl<C: Transport + Clone + Send + 'static> Publish for StoreBackedPublisher<C> {
    type Claim<'a> = StoreBackedClaim<'a, C>;
    type Batch<'a> = StoreBackedBatch<'a, C>;
    type TopicError = StoreBackedError;

    fn add_topic(&mut self, name: &str) -> Result<TopicId, StoreBackedError> {
        self.streams.open(name)
    }

    #[inline]
    fn try_claim_on(
        &mut self,
        topic: TopicId,
        len: usize,
    ) -> Result<StoreBackedClaim<'_, C>, ClaimError> {
        self.streams.reserve(topic, len)?;
        Ok(StoreBackedClaim::new(&mut self.streams, topic, len))
    }

    fn claim_on(
        &mut self,
        topic: TopicId,
        len: usize,
    ) -> Result<StoreBackedClaim<'_, C>, ClaimError> {
        self.streams.wait_for_room(topic, len)?;
        Ok(StoreBackedClaim::new(&mut self.streams, topic, len))
    }

    fn batch(&mut self) -> StoreBackedBatch<'_, C> {
        StoreBackedBatch::new(&mut self.streams)
    }

    /// Always an error: no experiment waits in an event loop.
    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn session(&self) -> SessionId {
        self.session
    }

    fn source(&self) -> &str {
        &self.source
    }

    fn longest_message(&self) -> usize {
        self.streams.topics.iter().map(|(_, it)| it.longest_message()).min().unwrap_or(0)
    }

    fn subscribers(&self) -> usize {
        self.streams.topics.iter().map(|(_, it)| it.subscribers()).min().unwrap_or(0)
    }

    /// Waits besides, once, until the subscribers have asked their stores for this run: messages
    /// that come earlier wait for the answer.
    fn wait_for_subscribers(&mut self, count: usize, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        loop {
            let work = self.streams.poll();
            if self.subscribers() >= count {
                break;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            rest(work);
        }
        if count > 0 && !std::mem::replace(&mut self.has_settled, true) {
            let until = Instant::now() + 2 * self.streams.retry();
            while Instant::now() < until {
                rest(self.streams.poll());
            }
        }
        true
    }

    fn poll_events(&mut self, mut handler: impl FnMut(PublisherEvent<'_>)) -> usize {
        self.streams.poll();
        self.streams.topics.iter_mut().map(|(_, it)| it.publisher().poll_events(&mut handler)).sum()
    }

    fn drain(&mut self, timeout: Duration) -> Completion {
        let until = Instant::now() + timeout;
        while self.streams.in_flight() > 0 && Instant::now() < until {
            rest(self.streams.poll());
        }
        let mut completion = Completion::default();
        for (_, publisher) in &mut self.streams.topics {
            let left = until.saturating_duration_since(Instant::now());
            completion.merge(publisher.publisher().drain(left));
        }
        completion
    }

    fn close(mut self, linger: Duration) -> Completion {
        self.streams.drain_flight();
        let until = Instant::now() + linger;
        let mut completion = Completion::default();
        for (_, publisher) in std::mem::take(&mut self.streams.topics) {
            let left = until.saturating_duration_since(Instant::now());
            completion.merge(publisher.close(left));
        }
        completion
    }
}

impl<C: Transport> fmt::Debug for StoreBackedPublisher<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreBackedPublisher").field("source", &self.source).finish_non_exhaustive()
    }
}
