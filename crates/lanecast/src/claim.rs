//! Claims and batches of messages, over any transport.

use crate::both::publisher::{BothBatch, BothClaim};
use crate::delegate::{delegate, delegate_into};
use lanecast_net::{NetBatch, NetClaim};
use lanecast_shm::{ShmBatch, ShmClaim};
use lanecast_transport::{Batch, Claim, ClaimError, TopicId};
use std::ops::{Deref, DerefMut};

/// Room for one message. Dropping it without commit aborts it.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyClaim<'a> {
    /// In shared memory.
    Shm(ShmClaim<'a>),
    /// In the retention window of a network session.
    Net(NetClaim<'a>),
    /// In shared memory and the retention window.
    Both(BothClaim<'a>),
}

impl Claim for AnyClaim<'_> {
    #[inline(always)]
    fn commit(self) {
        delegate!(self, Self, claim => claim.commit())
    }

    #[inline(always)]
    fn commit_and_claim_next(self, len: usize) -> Result<Self, ClaimError> {
        Ok(delegate_into!(self, Self => Self, claim => claim.commit_and_claim_next(len)?))
    }

    #[inline(always)]
    fn commit_and_claim_next_after(
        self,
        len: usize,
        reserve: impl FnOnce() -> Result<(), ClaimError>,
    ) -> Result<Self, ClaimError> {
        Ok(delegate_into!(self, Self => Self, claim => {
            claim.commit_and_claim_next_after(len, reserve)?
        }))
    }
}

impl Deref for AnyClaim<'_> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        delegate!(self, Self, claim => claim)
    }
}

impl DerefMut for AnyClaim<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        delegate!(self, Self, claim => claim)
    }
}

/// Messages that subscribers see together or not at all.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyBatch<'a> {
    /// In shared memory.
    Shm(ShmBatch<'a>),
    /// In the retention window of a network session.
    Net(NetBatch<'a>),
    /// In shared memory and the retention window.
    Both(BothBatch<'a>),
}

impl Batch for AnyBatch<'_> {
    #[inline(always)]
    fn try_add(&mut self, topic: TopicId, len: usize) -> Result<&mut [u8], ClaimError> {
        delegate!(self, Self, batch => batch.try_add(topic, len))
    }

    fn last(&mut self) -> &mut [u8] {
        delegate!(self, Self, batch => batch.last())
    }

    fn len(&self) -> usize {
        delegate!(self, Self, batch => batch.len())
    }

    fn publish(self) -> usize {
        delegate!(self, Self, batch => batch.publish())
    }
}
