//! Room for messages, written in place where they will be sent from.

use crate::outbound::Outbound;
use lanecast_os::biased::OwnerGuard;
use lanecast_transport::{Batch, Claim, ClaimError, TopicId};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Room for one message in the publisher's window. Dropped without commit, it was never there.
///
/// While it is held nobody else serves the session: repairs and signs of life wait. Write, and
/// commit.
pub struct NetClaim<'a> {
    outbound: OwnerGuard<'a, Outbound>,
    topic: TopicId,
    is_staged: bool,
}

impl<'a> NetClaim<'a> {
    /// The caller has staged the message.
    #[inline(always)]
    pub(crate) const fn new(outbound: OwnerGuard<'a, Outbound>, topic: TopicId) -> Self {
        Self { outbound, topic, is_staged: true }
    }
}

impl NetClaim<'_> {
    /// Publishes the message, and looks after the session until what comes next is no longer
    /// `blocked` by something else. There is no room in the claim until it is
    /// [renewed](Self::renew).
    pub fn publish_and_wait(&mut self, blocked: impl FnMut() -> bool) {
        self.publish();
        self.outbound.attend_while(blocked);
    }

    #[inline(always)]
    fn publish(&mut self) {
        self.is_staged = false;
        self.outbound.publish();
    }

    /// Takes room for the next message, waiting for it.
    ///
    /// # Errors
    /// See [`ClaimError`].
    #[inline]
    pub fn renew(&mut self, len: usize) -> Result<(), ClaimError> {
        self.outbound.stage_waiting(self.topic, len)?;
        self.is_staged = true;
        Ok(())
    }
}

impl Claim for NetClaim<'_> {
    #[inline(always)]
    fn commit(mut self) {
        self.publish();
    }

    #[inline]
    fn commit_and_claim_next(mut self, len: usize) -> Result<Self, ClaimError> {
        self.publish();
        self.renew(len)?;
        Ok(self)
    }
}

impl Deref for NetClaim<'_> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        self.outbound.sender.staged_bytes()
    }
}

impl DerefMut for NetClaim<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.outbound.sender.staged()
    }
}

impl Drop for NetClaim<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.is_staged {
            self.outbound.unstage();
        }
    }
}

impl fmt::Debug for NetClaim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetClaim").field("topic", &self.topic).finish_non_exhaustive()
    }
}

/// Messages that subscribers see together, or not at all. Dropped without publishing, none of
/// them was ever there.
pub struct NetBatch<'a> {
    outbound: OwnerGuard<'a, Outbound>,
    count: usize,
}

impl<'a> NetBatch<'a> {
    pub(crate) const fn new(outbound: OwnerGuard<'a, Outbound>) -> Self {
        Self { outbound, count: 0 }
    }

    /// The bytes of the message that was added last, if there is one.
    pub fn last(&self) -> &[u8] {
        self.outbound.sender.staged_bytes()
    }
}

impl Batch for NetBatch<'_> {
    fn try_add(&mut self, topic: TopicId, len: usize) -> Result<&mut [u8], ClaimError> {
        self.outbound.stage(topic, len)?;
        self.count += 1;
        Ok(self.outbound.sender.staged())
    }

    fn len(&self) -> usize {
        self.count
    }

    fn publish(mut self) -> usize {
        let count = std::mem::take(&mut self.count);
        if count > 0 {
            self.outbound.publish();
        }
        count
    }
}

impl Drop for NetBatch<'_> {
    fn drop(&mut self) {
        if self.count > 0 {
            self.outbound.unstage();
        }
    }
}

impl fmt::Debug for NetBatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetBatch").field("count", &self.count).finish_non_exhaustive()
    }
}
