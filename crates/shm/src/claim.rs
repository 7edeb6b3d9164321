//! Room in the ring, written in place.

use crate::memory::Memory;
use crate::publisher::Publisher;
use lanecast_base::Position;
use lanecast_transport::{Batch, Claim, ClaimError, Publish, TopicId};
use lanecast_wire::shm::{FRAME_HEADER, frame_bytes};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Room for one message in shared memory. Dropped without commit, it was never there.
pub struct ShmClaim<'a> {
    publisher: &'a mut Publisher,
    body: NonNull<u8>,
    length: u32,
    topic: TopicId,
}

impl<'a> ShmClaim<'a> {
    /// The caller has checked that the ring has room at the publisher's position.
    #[inline(always)]
    pub(crate) fn new(publisher: &'a mut Publisher, topic: TopicId, length: u32) -> Self {
        let at = publisher.edge().at();
        // Readers that have caught up look at this very line: taking it back begins now, while the
        // caller makes up its message.
        publisher.segment().prefetch_for_writing(at);
        let body = publisher.segment().byte(at.plus(FRAME_HEADER));
        Self { publisher, body, length, topic }
    }
}

impl Claim for ShmClaim<'_> {
    #[inline(always)]
    fn commit(self) {
        let bytes = frame_bytes(u64::from(self.length));
        self.publisher.edge().commit(self.topic.0, self.length, bytes);
    }

    #[inline(always)]
    fn commit_and_claim_next(self, len: usize) -> Result<Self, ClaimError> {
        let bytes = frame_bytes(u64::from(self.length));
        self.publisher.edge().commit(self.topic.0, self.length, bytes);
        self.publisher.claim_on(self.topic, len)
    }
}

impl Deref for ShmClaim<'_> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: as for `deref_mut`.
        unsafe { core::slice::from_raw_parts(self.body.as_ptr(), self.length as usize) }
    }
}

impl DerefMut for ShmClaim<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the bytes lie in the ring, which is mapped twice, so they do not wrap; no
        // reader looks at them before the commit word is written, and the claim borrows the
        // only writer.
        unsafe { core::slice::from_raw_parts_mut(self.body.as_ptr(), self.length as usize) }
    }
}

impl fmt::Debug for ShmClaim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShmClaim")
            .field("length", &self.length)
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}

/// Several messages in shared memory that become visible together.
#[derive(Debug)]
pub struct ShmBatch<'a> {
    publisher: &'a mut Publisher,
    /// Where the next message goes.
    end: Position,
    first_length: u32,
    count: usize,
}

impl<'a> ShmBatch<'a> {
    pub(crate) fn new(publisher: &'a mut Publisher) -> Self {
        let end = publisher.edge().at();
        Self { publisher, end, first_length: 0, count: 0 }
    }

    /// Whether there is room for a message of `len` bytes on `topic` now: there will be until it
    /// is taken.
    ///
    /// # Errors
    /// As for [`Batch::try_add`].
    pub fn has_room(&mut self, topic: TopicId, len: usize) -> Result<(), ClaimError> {
        self.publisher.check(topic, len)?;
        self.publisher.has_room(self.end.plus(frame_bytes(len as u64)))
    }
}

impl Batch for ShmBatch<'_> {
    fn try_add(&mut self, topic: TopicId, len: usize) -> Result<&mut [u8], ClaimError> {
        self.has_room(topic, len)?;
        let at = self.end;
        let end = at.plus(frame_bytes(len as u64));
        let length = len as u32;
        self.publisher.edge().stage(at, topic.0, length);
        if self.count == 0 {
            self.first_length = length;
        }
        self.end = end;
        self.count += 1;
        let body = self.publisher.segment().byte(at.plus(FRAME_HEADER));
        // SAFETY: the ring has room up to `end` and is mapped twice; nobody reads the bytes
        // before the first message's commit word is written; the slice borrows the batch, which
        // borrows the only writer.
        Ok(unsafe { core::slice::from_raw_parts_mut(body.as_ptr(), len) })
    }

    fn len(&self) -> usize {
        self.count
    }

    fn publish(self) -> usize {
        if self.count > 0 {
            self.publisher.edge().commit_batch(self.first_length, self.end, self.count as u64);
        }
        self.count
    }
}
