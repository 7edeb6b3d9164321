//! A publisher for subscribers on this host and on others.
//!
//! Its session exists twice under one number, with the same topics in the same order: in shared
//! memory and on the network. A message is written in place in the network's retention window, and
//! its commit copies it into shared memory.

use crate::both::wakeup::BothWakeup;
use crate::error::TopicError;
use crate::{net, shm};
use lanecast_net::{NetBatch, NetClaim};
use lanecast_shm::{ShmBatch, ShmClaim};
use lanecast_transport::{
    Batch, Claim, ClaimError, Completion, IncompleteSubscriber, Publish, PublisherEvent, SessionId,
    SubscriberId, SubscriberInfo, TopicId,
};
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Interval of polling one transport while waiting on the other.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The session in shared memory and on the network.
#[derive(Debug)]
pub(crate) struct BothPublisher {
    near: shm::Publisher,
    far: net::Publisher,
    source: String,
    wakeup: BothWakeup,
}

impl BothPublisher {
    pub(crate) fn new(near: shm::Publisher, far: net::Publisher) -> Self {
        let source = format!("{}+{}", near.source(), far.source());
        Self { near, far, source, wakeup: BothWakeup::default() }
    }

    pub(crate) fn flush(&mut self) {
        self.far.flush();
    }

    pub(crate) fn back_pressured(&mut self) -> u64 {
        self.near.back_pressured() + self.far.back_pressured()
    }

    fn check(&self, len: usize) -> Result<usize, ClaimError> {
        let longest = self.longest_message();
        if len > longest { Err(ClaimError::TooLong { longest }) } else { Ok(longest) }
    }
}

impl Publish for BothPublisher {
    type Claim<'a> = BothClaim<'a>;
    type Batch<'a> = BothBatch<'a>;
    type TopicError = TopicError;

    fn add_topic(&mut self, name: &str) -> Result<TopicId, TopicError> {
        // One number stands for the topic in both halves, so either both get it or neither does.
        self.near.can_add_topic(name)?;
        let far = self.far.add_topic(name)?;
        let near = self.near.add_topic(name)?;
        assert_eq!(near, far, "both halves have the same topics");
        Ok(near)
    }

    fn try_claim_on(&mut self, topic: TopicId, len: usize) -> Result<BothClaim<'_>, ClaimError> {
        let longest = self.check(len)?;
        let near = match self.near.try_claim_on(topic, len) {
            Ok(near) => near,
            Err(refused) => {
                if self.wakeup.is_open() {
                    settle(&mut self.far, topic, len);
                }
                return Err(refused);
            }
        };
        let far = self.far.try_claim_on(topic, len)?;
        Ok(BothClaim { near, far, longest })
    }

    fn claim_on(&mut self, topic: TopicId, len: usize) -> Result<BothClaim<'_>, ClaimError> {
        let longest = self.check(len)?;
        let near = self.near.claim_on(topic, len)?;
        let far = self.far.claim_on(topic, len)?;
        Ok(BothClaim { near, far, longest })
    }

    fn try_send_uncounted(&mut self, bytes: &[u8]) -> Result<(), ClaimError> {
        // Room in both halves first.
        self.try_claim(bytes.len())?.abort();
        self.far.try_send_uncounted(bytes)?;
        self.near.try_send_uncounted(bytes)
    }

    fn batch(&mut self) -> BothBatch<'_> {
        if self.wakeup.is_open() {
            settle(&mut self.far, TopicId::FIRST, 0);
        }
        let longest = self.longest_message();
        BothBatch { near: self.near.batch(), far: self.far.batch(), last: None, longest }
    }

    fn try_reserve(&mut self, count: usize, bytes: usize) -> Result<(), ClaimError> {
        if let Err(refused) = self.near.try_reserve(count, bytes) {
            if self.wakeup.is_open() {
                settle(&mut self.far, TopicId::FIRST, 0);
            }
            return Err(refused);
        }
        self.far.try_reserve(count, bytes)
    }

    fn pack(&mut self) {
        self.far.pack();
    }

    fn send_packed(&mut self) {
        self.far.send_packed();
    }

    fn keep_warm(&mut self) {
        self.far.keep_warm();
    }

    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        self.wakeup.open(self.near.wakeup(), self.far.wakeup())
    }

    fn session(&self) -> SessionId {
        self.near.session()
    }

    fn source(&self) -> &str {
        &self.source
    }

    fn longest_message(&self) -> usize {
        self.near.longest_message().min(self.far.longest_message())
    }

    fn subscribers(&self) -> usize {
        self.near.subscribers() + self.far.subscribers()
    }

    fn wait_for_subscribers(&mut self, count: usize, timeout: Duration) -> bool {
        let start = Instant::now();
        loop {
            let missing = count.saturating_sub(self.near.subscribers());
            let left = timeout.saturating_sub(start.elapsed());
            if self.far.wait_for_subscribers(missing, left.min(POLL_INTERVAL)) {
                return true;
            }
            if left.is_zero() {
                return false;
            }
        }
    }

    fn poll_events(&mut self, mut handler: impl FnMut(PublisherEvent<'_>)) -> usize {
        let near = self.near.poll_events(&mut handler);
        let far = self.far.poll_events(|event| match event {
            PublisherEvent::SubscriberJoined(info) => {
                handler(PublisherEvent::SubscriberJoined(&far_subscriber(info.clone())));
            }
            PublisherEvent::SubscriberLeft(info, reason) => {
                handler(PublisherEvent::SubscriberLeft(&far_subscriber(info.clone()), reason));
            }
            other => handler(other),
        });
        near + far
    }

    fn drain(&mut self, timeout: Duration) -> Completion {
        let start = Instant::now();
        // Send held-back messages before waiting for the subscribers of this host.
        self.far.flush();
        let mut completion = self.near.drain(timeout);
        let far = self.far.drain(timeout.saturating_sub(start.elapsed()));
        completion.add_complete(far.complete());
        completion.add_omitted(far.omitted());
        for IncompleteSubscriber { subscriber, reason } in far.incomplete() {
            completion.add_incomplete(far_subscriber(subscriber.clone()), *reason);
        }
        completion
    }

    fn close(mut self, linger: Duration) -> Completion {
        // Both are drained before either is closed: dropping them then closes them.
        self.drain(linger)
    }
}

/// Makes the network's descriptor unreadable, or wait for further progress: it may tell of room
/// that a claim was refused before, and only a claim there takes that back.
#[cold]
fn settle(far: &mut net::Publisher, topic: TopicId, len: usize) {
    let _ = far.try_claim_on(topic, len).map(Claim::abort);
}

/// A subscriber on the network, with an id that none in shared memory has.
fn far_subscriber(info: SubscriberInfo) -> SubscriberInfo {
    SubscriberInfo { id: SubscriberId(info.id.0 | 1 << 63), ..info }
}

/// Room for one message on both transports. Dropping it without commit aborts it.
#[derive(Debug)]
pub struct BothClaim<'a> {
    near: ShmClaim<'a>,
    /// Written in place; its commit copies it.
    far: NetClaim<'a>,
    longest: usize,
}

impl Claim for BothClaim<'_> {
    fn commit(mut self) {
        self.near.copy_from_slice(&self.far);
        self.near.commit();
        self.far.commit();
    }

    fn commit_and_claim_next_after(
        self,
        len: usize,
        reserve: impl FnOnce() -> Result<(), ClaimError>,
    ) -> Result<Self, ClaimError> {
        let Self { mut near, mut far, longest } = self;
        near.copy_from_slice(&far);
        let mut next = near.commit_before_next();
        far.publish_and_call(reserve)?;
        let mut room = Err(ClaimError::TooLong { longest });
        far.wait_while(|| {
            if len <= longest {
                room = next.has_space(len);
            }
            room == Ok(false)
        });
        room?;
        let near = next.try_claim(len)?;
        far.renew(len)?;
        Ok(Self { near, far, longest })
    }
}

impl Deref for BothClaim<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.far
    }
}

impl DerefMut for BothClaim<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.far
    }
}

/// Messages that subscribers see together or not at all. Dropping the batch without publishing
/// aborts it.
#[derive(Debug)]
pub struct BothBatch<'a> {
    near: ShmBatch<'a>,
    far: NetBatch<'a>,
    /// Topic of the last message, whose bytes may still change: it is not copied yet.
    last: Option<TopicId>,
    longest: usize,
}

impl BothBatch<'_> {
    fn copy_last(&mut self) {
        let Some(topic) = self.last.take() else { return };
        let bytes = self.far.last();
        // The space was checked before the message was added there, and only this batch takes it.
        let room = self.near.try_add(topic, bytes.len()).expect("checked space stays free");
        room.copy_from_slice(bytes);
    }
}

impl Batch for BothBatch<'_> {
    fn try_add(&mut self, topic: TopicId, len: usize) -> Result<&mut [u8], ClaimError> {
        self.copy_last();
        if len > self.longest {
            return Err(ClaimError::TooLong { longest: self.longest });
        }
        self.near.check_space(topic, len)?;
        let room = self.far.try_add(topic, len)?;
        self.last = Some(topic);
        Ok(room)
    }

    fn last(&mut self) -> &mut [u8] {
        self.far.last()
    }

    fn len(&self) -> usize {
        self.far.len()
    }

    fn publish(mut self) -> usize {
        self.copy_last();
        self.near.publish();
        self.far.publish()
    }
}
