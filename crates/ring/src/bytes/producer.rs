//! The producer: the writing end of a lane, its claims and batches.

use super::frame_memory::{ByteLane, FrameSpan, Frames};
use crate::cursor::Cursor;
use crate::gating::GatingCursors;
use crate::producer_lane::PARK_TIME_MAX;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use lanecast_base::{WaitStep, WaitStrategy, Waiter, spin};
use std::sync::Arc;

/// Writes messages. A drop publishes committed messages and ends the stream.
#[derive(Debug)]
pub struct ByteProducer {
    lane: Arc<ByteLane>,
    /// The lane's frames and tail, so that a claim loads them from here.
    frames: Frames,
    tail: Arc<Cursor>,
    /// Heads of all consumers.
    heads: GatingCursors,
    /// Position of the next frame.
    at: u64,
    /// Known limit of writing.
    limit: u64,
    /// Number of committed, unpublished messages.
    held_back: u32,
    /// Messages between two publications.
    stride: u32,
    waiter: Waiter,
}

impl ByteProducer {
    pub(super) fn new(
        lane: Arc<ByteLane>,
        heads: GatingCursors,
        stride: u32,
        strategy: WaitStrategy,
    ) -> Self {
        let waiter = Waiter::new(strategy);
        let (frames, tail) = (lane.slots.frames(), lane.tail.clone());
        Self { lane, frames, tail, heads, at: 0, limit: 0, held_back: 0, stride, waiter }
    }

    /// Claims space for a message of `len` bytes. Never blocks.
    ///
    /// # Errors
    /// See [`ClaimError`]. It reports [`ClaimError::Closed`] once the known free space is used up.
    #[inline]
    pub fn try_claim(&mut self, len: usize) -> Result<ByteClaim<'_>, ClaimError> {
        let place = self.span_at(self.at, len)?;
        Ok(ByteClaim::new(self, place, len))
    }

    /// Claims space for a message of `len` bytes; waits for it by the ring's strategy.
    ///
    /// # Errors
    /// See [`ClaimError`]; never [`ClaimError::Full`].
    #[inline]
    pub fn claim(&mut self, len: usize) -> Result<ByteClaim<'_>, ClaimError> {
        let place = match self.span_at(self.at, len) {
            Err(ClaimError::Full) => self.wait_for_space(len)?,
            result => result?,
        };
        Ok(ByteClaim::new(self, place, len))
    }

    /// Copies `message` into the ring, if there is space now.
    ///
    /// # Errors
    /// See [`ClaimError`].
    #[inline]
    pub fn try_send(&mut self, message: &[u8]) -> Result<(), ClaimError> {
        let mut claim = self.try_claim(message.len())?;
        claim.copy_from_slice(message);
        claim.commit();
        Ok(())
    }

    /// Copies `message` into the ring; waits for space.
    ///
    /// # Errors
    /// See [`ClaimError`]; never [`ClaimError::Full`].
    #[inline]
    pub fn send(&mut self, message: &[u8]) -> Result<(), ClaimError> {
        let mut claim = self.claim(message.len())?;
        claim.copy_from_slice(message);
        claim.commit();
        Ok(())
    }

    /// Starts a batch: several messages, published together.
    pub fn batch(&mut self) -> ByteBatch<'_> {
        ByteBatch::new(self)
    }

    /// Publishes committed messages that a stride holds back.
    pub fn flush(&mut self) {
        if self.held_back > 0 {
            self.publish(self.at);
        }
    }

    /// The ring's size in bytes.
    pub fn capacity(&self) -> usize {
        self.frames.capacity()
    }

    /// The longest message, in bytes.
    pub fn longest(&self) -> usize {
        self.frames.longest()
    }

    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    /// Commits the frame that ends at `end`.
    #[inline(always)]
    fn commit(&mut self, end: u64, stride: u32, tail: NonNull<Cursor>) {
        if stride == 1 {
            self.at = end;
            // SAFETY: this producer's lane keeps it.
            unsafe { tail.as_ref() }.publish(end);
        } else {
            self.hold_back(end);
        }
    }

    fn hold_back(&mut self, end: u64) {
        self.at = end;
        self.held_back += 1;
        self.lane.set_written(end);
        // A sleeping consumer does not see messages that are held back.
        if self.held_back >= self.stride || self.tail.has_sleepers() {
            self.publish(end);
        }
    }

    /// Publishes all messages up to `end`.
    #[inline(always)]
    pub(super) fn publish(&mut self, end: u64) {
        self.at = end;
        self.held_back = 0;
        self.tail.publish(end);
    }

    /// Space for a message of `len` bytes whose frame follows `at`.
    #[inline(always)]
    pub(super) fn span_at(&mut self, at: u64, len: usize) -> Result<FrameSpan, ClaimError> {
        let longest = self.longest();
        if len > longest {
            return Err(ClaimError::TooLong { longest });
        }
        let place = self.frames.place(at, len);
        if place.end > self.limit {
            self.update_limit(place.end)?;
        }
        if place.start != at {
            self.frames.pad(at);
        }
        Ok(place)
    }

    #[inline(never)]
    fn update_limit(&mut self, end: u64) -> Result<(), ClaimError> {
        let slowest = self.heads.slowest().ok_or(ClaimError::Closed)?;
        self.limit = slowest + self.capacity() as u64;
        if end <= self.limit {
            return Ok(());
        }
        // Consumers release space only after reading, so publish messages that are held back.
        self.flush();
        Err(ClaimError::Full)
    }

    #[cold]
    fn wait_for_space(&mut self, len: usize) -> Result<FrameSpan, ClaimError> {
        loop {
            match self.waiter.next_step() {
                WaitStep::Spin(pauses) => spin(pauses),
                WaitStep::Yield => std::thread::yield_now(),
                // While the slowest consumer stays at its last known position, there is no space.
                WaitStep::Park => {
                    let slowest = self.limit - self.capacity() as u64;
                    self.heads.sleep(slowest, PARK_TIME_MAX);
                }
            }
            match self.span_at(self.at, len) {
                Err(ClaimError::Full) => {}
                result => {
                    self.waiter.reset();
                    self.heads.found();
                    return result;
                }
            }
        }
    }
}

impl Drop for ByteProducer {
    fn drop(&mut self) {
        self.flush();
        self.lane.close(self.at);
    }
}

/// A claim failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// The ring is full now: try again, or wait.
    #[error("the ring is full: the slowest consumer has all of it still to read")]
    Full,
    /// The message is longer than the longest; waiting does not help.
    #[error(
        "the message is longer than {longest} bytes: \
         make the ring larger (a message may take half of it)"
    )]
    TooLong {
        /// The longest message, in bytes.
        longest: usize,
    },
    /// Every consumer is gone.
    #[error("every consumer of the ring is gone")]
    Closed,
}

/// Claimed space for one message. A drop without [`commit`](Self::commit) discards it.
///
/// It holds stale bytes: write every byte.
pub struct ByteClaim<'a> {
    producer: &'a mut ByteProducer,
    body: NonNull<[u8]>,
    /// End of its frame.
    end: u64,
    /// The producer's stride and its lane's tail, loaded before the first store: see
    /// `Producer::put`.
    stride: u32,
    tail: NonNull<Cursor>,
}

impl<'a> ByteClaim<'a> {
    /// The caller has checked that there is space at `place`.
    #[inline(always)]
    pub(super) fn new(producer: &'a mut ByteProducer, place: FrameSpan, len: usize) -> Self {
        let (stride, tail) = (producer.stride, NonNull::from(&*producer.tail));
        let body = producer.frames.begin(place.start, len);
        Self { producer, body, end: place.end, stride, tail }
    }

    /// Publishes the message, at once or with the producer's stride.
    #[inline(always)]
    pub fn commit(self) {
        self.producer.commit(self.end, self.stride, self.tail);
    }

    /// Publishes the message, then claims space for the next, waiting for it.
    ///
    /// # Errors
    /// As for [`ByteProducer::claim`]; this message is published even so.
    #[inline(always)]
    pub fn commit_and_claim_next(self, len: usize) -> Result<Self, ClaimError> {
        let Self { producer, end, stride, tail, .. } = self;
        producer.commit(end, stride, tail);
        producer.claim(len)
    }

    /// Discards the claim, as a drop does.
    pub fn abort(self) {}
}

impl Deref for ByteClaim<'_> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: as for `deref_mut`.
        unsafe { self.body.as_ref() }
    }
}

impl DerefMut for ByteClaim<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: initialised bytes within the lane, which the producer borrowed here keeps; every
        // consumer has released them and none looks at them before they are published.
        unsafe { self.body.as_mut() }
    }
}

impl fmt::Debug for ByteClaim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteClaim").field("len", &self.body.len()).finish_non_exhaustive()
    }
}

/// Messages that become visible together. A drop without [`publish`](Self::publish) discards them.
#[derive(Debug)]
pub struct ByteBatch<'a> {
    producer: &'a mut ByteProducer,
    end: u64,
    count: usize,
}

impl<'a> ByteBatch<'a> {
    pub(super) fn new(producer: &'a mut ByteProducer) -> Self {
        let end = producer.at();
        Self { producer, end, count: 0 }
    }

    /// Adds space for one more message, to be written in place now.
    ///
    /// # Errors
    /// As for [`ByteProducer::try_claim`]. Messages added before stay; if the batch alone fills the
    /// ring, only its publication frees space.
    pub fn try_add(&mut self, len: usize) -> Result<&mut [u8], ClaimError> {
        let place = self.producer.span_at(self.end, len)?;
        let mut body = self.producer.frames.begin(place.start, len);
        self.end = place.end;
        self.count += 1;
        // SAFETY: initialised bytes within the lane that every consumer has released; consumers
        // read them only after the batch is published, and the slice borrows the batch.
        Ok(unsafe { body.as_mut() })
    }

    /// Number of messages in the batch.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether the batch is empty.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Publishes all messages at once; returns their number.
    pub fn publish(self) -> usize {
        if self.count > 0 {
            self.producer.publish(self.end);
        }
        self.count
    }
}
