//! Room for messages, written in place.

use super::memory::Place;
use super::producer::ByteProducer;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// Why there is no room for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// Not now: try again, or wait.
    #[error("the ring is full: the slowest consumer has all of it still to read")]
    Full,
    /// Longer than the longest message; no waiting helps.
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

/// Room for one message. Dropped without [`commit`](Self::commit), it was never there.
///
/// Holds what was there before: write every byte that consumers are to see.
pub struct ByteClaim<'a> {
    producer: &'a mut ByteProducer,
    body: NonNull<[u8]>,
    place: Place,
}

impl<'a> ByteClaim<'a> {
    /// The caller has checked that there is room at `place`.
    #[inline(always)]
    pub(super) fn new(producer: &'a mut ByteProducer, place: Place, len: usize) -> Self {
        let body = producer.memory().body_mut(place.start, len);
        Self { producer, body, place }
    }

    /// Publishes the message, at once or with the producer's stride.
    #[inline(always)]
    pub fn commit(self) {
        self.producer.memory().set_length(self.place.start, self.body.len());
        self.producer.commit(self.place.end);
    }

    /// Publishes the message, then claims room for the next, waiting for it.
    ///
    /// # Errors
    /// As for [`ByteProducer::claim`]; this message is published even so.
    #[inline(always)]
    pub fn commit_and_claim_next(self, len: usize) -> Result<Self, ClaimError> {
        let Self { producer, body, place } = self;
        producer.memory().set_length(place.start, body.len());
        producer.commit(place.end);
        producer.claim(len)
    }

    /// Gives the room back; the same as dropping the claim.
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

/// Messages that become visible together. Dropped without [`publish`](Self::publish), none of them
/// was ever there.
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

    /// Adds room for one more message, to be written in place now.
    ///
    /// # Errors
    /// As for [`ByteProducer::try_claim`]. The messages added before stay; if the batch fills the
    /// ring by itself, only publishing it makes room.
    pub fn try_add(&mut self, len: usize) -> Result<&mut [u8], ClaimError> {
        let place = self.producer.room_at(self.end, len)?;
        let memory = self.producer.memory();
        memory.set_length(place.start, len);
        let mut body = memory.body_mut(place.start, len);
        self.end = place.end;
        self.count += 1;
        // SAFETY: initialised bytes within the lane that every consumer has released; nobody looks
        // at them before the batch is published, and the slice borrows the batch.
        Ok(unsafe { body.as_mut() })
    }

    /// How many messages it holds.
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether it holds none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Publishes all of them at once; returns how many.
    pub fn publish(self) -> usize {
        if self.count > 0 {
            self.producer.publish(self.end);
        }
        self.count
    }
}
