//! Claims and batches: messages written in place, in the window of the publisher's session.

use crate::send_session::SendSession;
use lanecast_os::biased::OwnerGuard;
use lanecast_transport::{Batch, Claim, ClaimError, TopicId};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Room for one message in the publisher's window. Dropping it without a commit aborts it.
///
/// The claim holds the session's lock: repairs and heartbeats wait until it is committed.
pub struct NetClaim<'a> {
    session: OwnerGuard<'a, SendSession>,
    topic: TopicId,
    is_staged: bool,
}

impl<'a> NetClaim<'a> {
    /// A claim of the message that the caller has staged.
    #[inline(always)]
    pub(crate) const fn new(session: OwnerGuard<'a, SendSession>, topic: TopicId) -> Self {
        Self { session, topic, is_staged: true }
    }
}

impl NetClaim<'_> {
    /// Publishes the message, and calls `then`, during which the conductor may drive the session.
    /// The claim has no room until it is [renewed](Self::renew).
    ///
    /// # Errors
    /// Those of `then`.
    #[inline]
    pub fn publish_and_call(
        &mut self,
        then: impl FnOnce() -> Result<(), ClaimError>,
    ) -> Result<(), ClaimError> {
        self.publish();
        self.session.unlocked(then)
    }

    /// Drives the session of a published message while the caller is `blocked` by something else.
    pub fn wait_while(&mut self, blocked: impl FnMut() -> bool) {
        self.session.drive_while_blocked(blocked);
    }

    #[inline(always)]
    fn publish(&mut self) {
        // First: a panic while sending must not abort messages that are published.
        self.is_staged = false;
        self.session.publish();
    }

    /// Claims room for the next message, waiting for it.
    ///
    /// # Errors
    /// See [`ClaimError`].
    #[inline]
    pub fn renew(&mut self, len: usize) -> Result<(), ClaimError> {
        // On an error nothing is staged, and the drop has nothing to abort.
        self.session.stage_blocking(self.topic, len)?;
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

    #[inline]
    fn commit_and_claim_next_after(
        mut self,
        len: usize,
        reserve: impl FnOnce() -> Result<(), ClaimError>,
    ) -> Result<Self, ClaimError> {
        self.publish_and_call(reserve)?;
        self.renew(len)?;
        Ok(self)
    }
}

impl Deref for NetClaim<'_> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        self.session.sender.staged_bytes()
    }
}

impl DerefMut for NetClaim<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.session.sender.staged()
    }
}

impl Drop for NetClaim<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.is_staged {
            self.session.unstage();
        }
    }
}

impl fmt::Debug for NetClaim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetClaim").field("topic", &self.topic).finish_non_exhaustive()
    }
}

/// Messages that subscribers see together or not at all. Dropping the batch without publishing
/// aborts all of them.
pub struct NetBatch<'a> {
    session: OwnerGuard<'a, SendSession>,
    count: usize,
}

impl<'a> NetBatch<'a> {
    pub(crate) const fn new(session: OwnerGuard<'a, SendSession>) -> Self {
        Self { session, count: 0 }
    }
}

impl Batch for NetBatch<'_> {
    fn try_add(&mut self, topic: TopicId, len: usize) -> Result<&mut [u8], ClaimError> {
        self.session.stage(topic, len)?;
        self.count += 1;
        Ok(self.session.sender.staged())
    }

    fn last(&mut self) -> &mut [u8] {
        // A claim dropped before this batch leaves its bytes, which are not the batch's.
        if self.count == 0 { &mut [] } else { self.session.sender.staged() }
    }

    fn len(&self) -> usize {
        self.count
    }

    fn publish(mut self) -> usize {
        // Zero from here on: the drop that follows must not abort what is published.
        let count = std::mem::take(&mut self.count);
        if count > 0 {
            self.session.publish();
        }
        count
    }
}

impl Drop for NetBatch<'_> {
    fn drop(&mut self) {
        // Only a batch that was dropped unpublished has messages to abort.
        if self.count > 0 {
            self.session.unstage();
        }
    }
}

impl fmt::Debug for NetBatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetBatch").field("count", &self.count).finish_non_exhaustive()
    }
}
