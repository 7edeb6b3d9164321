//! Claims: space in the ring that the caller fills in place, for one message or a batch.

use crate::gated_writer::GatedWriter;
use crate::memory::Memory;
use lanecast_base::Position;
use lanecast_transport::{Batch, Claim, ClaimError, TopicId};
use lanecast_wire::shm::{FRAME_HEADER, frame_bytes};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Space for one message in shared memory. A drop without commit discards the message.
pub struct ShmClaim<'a> {
    writer: &'a mut GatedWriter,
    at: Position,
    body: NonNull<u8>,
    length: u32,
    topic: TopicId,
}

impl<'a> ShmClaim<'a> {
    /// Claims `len` bytes on `topic` if there is space.
    #[inline(always)]
    pub(crate) fn try_new(
        writer: &'a mut GatedWriter,
        topic: TopicId,
        len: usize,
    ) -> Result<Self, ClaimError> {
        writer.check(topic, len)?;
        let bytes = frame_bytes(len as u64);
        let end = writer.ring().at().plus(bytes);
        writer.check_space(end, bytes)?;
        Ok(Self::new(writer, topic, len as u32))
    }

    /// Claims `len` bytes on `topic`; waits for space.
    #[inline(always)]
    pub(crate) fn wait_new(
        writer: &'a mut GatedWriter,
        topic: TopicId,
        len: usize,
    ) -> Result<Self, ClaimError> {
        writer.check(topic, len)?;
        let end = writer.ring().at().plus(frame_bytes(len as u64));
        writer.wait_for_space(end);
        Ok(Self::new(writer, topic, len as u32))
    }

    /// The caller has checked that the ring has space at the writer's position.
    #[inline(always)]
    fn new(writer: &'a mut GatedWriter, topic: TopicId, length: u32) -> Self {
        let at = writer.ring().at();
        // Readers that have caught up poll this cache line: fetch it for writing now, while the
        // caller composes its message.
        writer.segment().prefetch_for_writing(at);
        let body = writer.segment().byte(at.plus(FRAME_HEADER));
        Self { writer, at, body, length, topic }
    }
}

impl<'a> ShmClaim<'a> {
    /// Commits the message; the next one on its topic is claimed from what this returns.
    #[inline]
    pub fn commit_before_next(self) -> NextShmClaim<'a> {
        let Self { writer, at, body: _, length, topic } = self;
        writer.ring().commit(at, topic.0, length, frame_bytes(u64::from(length)));
        NextShmClaim { writer, topic, is_waiting: false }
    }
}

/// The place of the message after one that is committed.
#[derive(Debug)]
pub struct NextShmClaim<'a> {
    writer: &'a mut GatedWriter,
    topic: TopicId,
    /// The caller has found no space before.
    is_waiting: bool,
}

impl<'a> NextShmClaim<'a> {
    /// Whether there is space for a message of `len` bytes, which stays free: for a caller that
    /// waits until there is. No claim is refused by it: it leads to no
    /// [`Writable`](lanecast_transport::PublisherEvent::Writable), and all looks of one wait count
    /// as back-pressure once.
    ///
    /// # Errors
    /// See [`ClaimError`]; never `BackPressured`.
    #[inline]
    pub fn has_space(&mut self, len: usize) -> Result<bool, ClaimError> {
        self.writer.check(self.topic, len)?;
        let end = self.writer.ring().at().plus(frame_bytes(len as u64));
        let found = self.writer.has_awaited_space(end, self.is_waiting);
        self.is_waiting = !found;
        Ok(found)
    }

    /// Claims `len` bytes if there is space.
    ///
    /// # Errors
    /// See [`ClaimError`].
    #[inline]
    pub fn try_claim(self, len: usize) -> Result<ShmClaim<'a>, ClaimError> {
        ShmClaim::try_new(self.writer, self.topic, len)
    }
}

impl Claim for ShmClaim<'_> {
    #[inline(always)]
    fn commit(self) {
        let bytes = frame_bytes(u64::from(self.length));
        self.writer.ring().commit(self.at, self.topic.0, self.length, bytes);
    }

    #[inline(always)]
    fn commit_and_claim_next_after(
        self,
        len: usize,
        reserve: impl FnOnce() -> Result<(), ClaimError>,
    ) -> Result<Self, ClaimError> {
        let bytes = frame_bytes(u64::from(self.length));
        self.writer.ring().commit(self.at, self.topic.0, self.length, bytes);
        reserve()?;
        Self::wait_new(self.writer, self.topic, len)
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
        // SAFETY: the bytes lie in the ring, which is mapped twice, so they do not wrap; readers
        // read them after the commit word only, and the claim borrows the only writer.
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
    writer: &'a mut GatedWriter,
    /// Position of the next message.
    end: Position,
    /// Position and length of the last message.
    last: (Position, usize),
    first_length: u32,
    count: usize,
}

impl<'a> ShmBatch<'a> {
    pub(crate) fn new(writer: &'a mut GatedWriter) -> Self {
        // The last batch may have been leaked.
        writer.ring().unstage();
        let end = writer.ring().at();
        Self { writer, end, last: (end, 0), first_length: 0, count: 0 }
    }

    /// Checks that there is space for a message of `len` bytes on `topic`. The space stays free
    /// until the next [`Batch::try_add`].
    ///
    /// # Errors
    /// As for [`Batch::try_add`].
    pub fn check_space(&mut self, topic: TopicId, len: usize) -> Result<(), ClaimError> {
        self.writer.check(topic, len)?;
        let bytes = frame_bytes(len as u64);
        self.writer.check_space(self.end.plus(bytes), bytes)
    }
}

impl Batch for ShmBatch<'_> {
    fn try_add(&mut self, topic: TopicId, len: usize) -> Result<&mut [u8], ClaimError> {
        self.check_space(topic, len)?;
        let at = self.end;
        let end = at.plus(frame_bytes(len as u64));
        let length = len as u32;
        self.writer.ring().stage(at, topic.0, length, frame_bytes(len as u64));
        if self.count == 0 {
            self.first_length = length;
        }
        self.end = end;
        self.last = (at, len);
        self.count += 1;
        Ok(self.last())
    }

    fn last(&mut self) -> &mut [u8] {
        let (at, len) = self.last;
        if len == 0 {
            return &mut [];
        }
        let body = self.writer.segment().byte(at.plus(FRAME_HEADER));
        // SAFETY: `try_add` checked that the ring has space for these bytes, and the ring is mapped
        // twice; readers read the bytes after the first message's commit word only; the slice
        // borrows the batch, which borrows the only writer.
        unsafe { core::slice::from_raw_parts_mut(body.as_ptr(), len) }
    }

    fn len(&self) -> usize {
        self.count
    }

    fn publish(self) -> usize {
        if self.count > 0 {
            self.writer.ring().commit_batch(self.first_length, self.end);
        }
        // The drop ends the batch.
        self.count
    }
}

impl Drop for ShmBatch<'_> {
    fn drop(&mut self) {
        // A published batch has none left.
        self.writer.ring().unstage();
        self.writer.end_batch();
    }
}
