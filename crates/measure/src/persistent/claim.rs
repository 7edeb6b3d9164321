//! Room for one message whose copy stays in flight.

use super::outgoing::OutgoingStreams;
use lanecast_transport::{Claim, ClaimError, TopicId, Transport};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Buffer of one message. The commit sends it first and copies it into the flight afterwards.
pub struct StoreBackedClaim<'a, C: Transport> {
    streams: &'a mut OutgoingStreams<C>,
    topic: TopicId,
    length: usize,
}

impl<'a, C: Transport> StoreBackedClaim<'a, C> {
    pub(super) const fn new(
        streams: &'a mut OutgoingStreams<C>,
        topic: TopicId,
        length: usize,
    ) -> Self {
        Self { streams, topic, length }
    }
}

impl<C: Transport> Claim for StoreBackedClaim<'_, C> {
    #[inline]
    fn commit(self) {
        self.streams.commit(self.topic, self.length);
    }

    #[inline]
    fn commit_and_claim_next_after(
        self,
        len: usize,
        reserve: impl FnOnce() -> Result<(), ClaimError>,
    ) -> Result<Self, ClaimError> {
        let Self { streams, topic, length } = self;
        streams.commit(topic, length);
        reserve()?;
        streams.wait_for_room(topic, len)?;
        Ok(Self::new(streams, topic, len))
    }
}

impl<C: Transport> fmt::Debug for StoreBackedClaim<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreBackedClaim").field("length", &self.length).finish_non_exhaustive()
    }
}

impl<C: Transport> Deref for StoreBackedClaim<'_, C> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.streams.buffer[..self.length]
    }
}

impl<C: Transport> DerefMut for StoreBackedClaim<'_, C> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.streams.buffer[..self.length]
    }
}
