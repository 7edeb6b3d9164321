//! Claims and batches of a publisher that serves filters.

use crate::matching::{Matching, find_room};
use lanecast_transport::{Batch, Claim, ClaimError, Publish, TopicId, Transport};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// A claimed buffer of a transport.
type Room<'a, C> = <<C as Transport>::Publisher as Publish>::Claim<'a>;

/// Room for one message; its commit evaluates the filters. Dropping it without commit aborts it.
pub struct FilterableClaim<'a, C: Transport + 'static> {
    room: Room<'a, C>,
    matching: &'a mut Matching<C>,
    topic: TopicId,
}

impl<'a, C: Transport + 'static> FilterableClaim<'a, C> {
    #[inline]
    pub(crate) const fn new(
        room: Room<'a, C>,
        matching: &'a mut Matching<C>,
        topic: TopicId,
    ) -> Self {
        Self { room, matching, topic }
    }

    #[inline]
    fn publish_matching(&mut self) {
        if self.topic == TopicId::FIRST {
            self.matching.publish(&self.room);
        }
    }
}

impl<C: Transport + 'static> Claim for FilterableClaim<'_, C> {
    #[inline]
    fn commit(mut self) {
        self.publish_matching();
        self.room.commit();
    }

    #[inline]
    fn commit_and_claim_next_after(
        mut self,
        len: usize,
        reserve: impl FnOnce() -> Result<(), ClaimError>,
    ) -> Result<Self, ClaimError> {
        self.publish_matching();
        let Self { room, matching, topic } = self;
        // The wait for subscribers with a filter comes before the claim: a claim locks the session
        // of the others, which would take the publisher for dead.
        let room = room.commit_and_claim_next_after(len, || {
            reserve()?;
            if topic != TopicId::FIRST {
                matching.settle();
                return Ok(());
            }
            matching.serve_sometimes();
            matching.reserve(len, find_room)
        })?;
        Ok(Self { room, matching, topic })
    }
}

impl<C: Transport + 'static> fmt::Debug for FilterableClaim<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterableClaim")
            .field("length", &self.room.len())
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}

impl<C: Transport + 'static> Deref for FilterableClaim<'_, C> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.room
    }
}

impl<C: Transport + 'static> DerefMut for FilterableClaim<'_, C> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.room
    }
}

/// Several messages that become visible together, to subscribers with and without filters. Dropping
/// it without publishing aborts all of them.
pub struct FilterableBatch<'a, C: Transport + 'static> {
    all: <C::Publisher as Publish>::Batch<'a>,
    matching: &'a mut Matching<C>,
    /// Topic of the last message, whose bytes may still change: it is not evaluated yet.
    last: Option<TopicId>,
    /// Bytes of the messages on the topic with filters, their count, and the longest of them.
    bytes: usize,
    count: usize,
    longest: usize,
    /// Frames of the matching messages, one after another, and their lengths.
    frames: Vec<u8>,
    lengths: Vec<usize>,
    /// Number of evaluated messages.
    evaluated: u64,
}

impl<'a, C: Transport + 'static> FilterableBatch<'a, C> {
    pub(crate) fn new(
        all: <C::Publisher as Publish>::Batch<'a>,
        matching: &'a mut Matching<C>,
    ) -> Self {
        Self {
            all,
            matching,
            last: None,
            bytes: 0,
            count: 0,
            longest: 0,
            frames: Vec::new(),
            lengths: Vec::new(),
            evaluated: 0,
        }
    }

    fn evaluate_last(&mut self) {
        if self.last.take() == Some(TopicId::FIRST) {
            let (frames, lengths) = (&mut self.frames, &mut self.lengths);
            self.matching.collect(self.evaluated, self.all.last(), frames, lengths);
            self.evaluated += 1;
        }
    }
}

impl<C: Transport + 'static> Batch for FilterableBatch<'_, C> {
    fn try_add(&mut self, topic: TopicId, len: usize) -> Result<&mut [u8], ClaimError> {
        if topic == TopicId::FIRST {
            let longest = self.longest.max(len);
            self.matching.reserve_batch(self.count + 1, self.bytes + len, longest)?;
        } else {
            self.matching.settle();
        }
        let (last, frames, lengths) = (self.last, self.frames.len(), self.lengths.len());
        let (evaluated, counts) = (self.evaluated, self.matching.counts());
        self.evaluate_last();
        if let Err(refused) = self.all.try_add(topic, len) {
            // The last message stays the last, whose bytes may still change.
            self.frames.truncate(frames);
            self.lengths.truncate(lengths);
            (self.last, self.evaluated) = (last, evaluated);
            self.matching.reset_counts(counts);
            return Err(refused);
        }
        if topic == TopicId::FIRST {
            self.count += 1;
            self.bytes += len;
            self.longest = self.longest.max(len);
        }
        self.last = Some(topic);
        Ok(self.all.last())
    }

    fn last(&mut self) -> &mut [u8] {
        self.all.last()
    }

    fn len(&self) -> usize {
        self.all.len()
    }

    fn publish(mut self) -> usize {
        self.evaluate_last();
        self.matching.publish_batch(self.evaluated, &self.frames, &self.lengths);
        self.all.publish()
    }
}

impl<C: Transport + 'static> fmt::Debug for FilterableBatch<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterableBatch").field("count", &self.count).finish_non_exhaustive()
    }
}
