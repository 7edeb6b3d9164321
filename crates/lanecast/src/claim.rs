//! Room for messages, whatever way they take.

use crate::publisher::{BothBatch, BothClaim};
use lanecast_net::{NetBatch, NetClaim};
use lanecast_shm::{ShmBatch, ShmClaim};
use lanecast_transport::{Batch, Claim, ClaimError, TopicId};
use std::ops::{Deref, DerefMut};

/// Room for one message. Dropped without commit, it was never there.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyClaim<'a> {
    /// In shared memory.
    Shm(ShmClaim<'a>),
    /// In the window that goes out to the network.
    Net(NetClaim<'a>),
    /// In both.
    Both(BothClaim<'a>),
}

impl Claim for AnyClaim<'_> {
    #[inline(always)]
    fn commit(self) {
        match self {
            Self::Shm(claim) => claim.commit(),
            Self::Net(claim) => claim.commit(),
            Self::Both(claim) => claim.commit(),
        }
    }

    #[inline(always)]
    fn commit_and_claim_next(self, len: usize) -> Result<Self, ClaimError> {
        Ok(match self {
            Self::Shm(claim) => Self::Shm(claim.commit_and_claim_next(len)?),
            Self::Net(claim) => Self::Net(claim.commit_and_claim_next(len)?),
            Self::Both(claim) => Self::Both(claim.commit_and_claim_next(len)?),
        })
    }
}

impl Deref for AnyClaim<'_> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Shm(claim) => claim,
            Self::Net(claim) => claim,
            Self::Both(claim) => claim,
        }
    }
}

impl DerefMut for AnyClaim<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Shm(claim) => claim,
            Self::Net(claim) => claim,
            Self::Both(claim) => claim,
        }
    }
}

/// Messages that subscribers see together, or not at all.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyBatch<'a> {
    /// In shared memory.
    Shm(ShmBatch<'a>),
    /// In the window that goes out to the network.
    Net(NetBatch<'a>),
    /// In both.
    Both(BothBatch<'a>),
}

impl Batch for AnyBatch<'_> {
    #[inline(always)]
    fn try_add(&mut self, topic: TopicId, len: usize) -> Result<&mut [u8], ClaimError> {
        match self {
            Self::Shm(batch) => batch.try_add(topic, len),
            Self::Net(batch) => batch.try_add(topic, len),
            Self::Both(batch) => batch.try_add(topic, len),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Shm(batch) => batch.len(),
            Self::Net(batch) => batch.len(),
            Self::Both(batch) => batch.len(),
        }
    }

    fn publish(self) -> usize {
        match self {
            Self::Shm(batch) => batch.publish(),
            Self::Net(batch) => batch.publish(),
            Self::Both(batch) => batch.publish(),
        }
    }
}
