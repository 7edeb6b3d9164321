//! What a subscriber is told.

use crate::stream::Stream;
use core::fmt;
use lanecast_base::sync::{AtomicU64, Ordering};

/// One thing that happened on a subscription.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A publisher of a wanted topic is there: once per stream, before all else from it.
    Joined(&'a Stream),
    /// A message, read in place.
    Message(Message<'a>),
    /// Messages that will not come: told before any later message of the stream.
    Lost(Gap<'a>),
    /// The stream is over: once per stream, after all else from it.
    Left(&'a Stream, CloseReason),
}

/// A message, read where the transport holds it: valid inside the handler's call.
///
/// Transports that overwrite what a stalled subscriber still reads, because the publisher is
/// configured to evict it, hand out a copy that they have checked: the bytes are whole then, too.
/// Without such a policy they are read in place, and only the hostile can have them overwritten: a
/// writer of a shared gate who makes the publisher take another's place away. What must not be
/// wrong even so is kept by [`to_vec`](Self::to_vec) or [`copy_into`](Self::copy_into).
#[derive(Clone, Copy)]
pub struct Message<'a> {
    bytes: &'a [u8],
    stream: &'a Stream,
    lease: Lease<'a>,
}

/// The right to read in place: it lasts until the publisher takes the reader's place away.
#[derive(Clone, Copy, Debug)]
pub struct Lease<'a> {
    revoked: Option<&'a AtomicU64>,
    mine: u64,
}

impl<'a> Lease<'a> {
    /// A right that nobody can take away.
    pub const FOR_GOOD: Lease<'static> = Lease { revoked: None, mine: 0 };

    /// A right that ends when `revoked` holds `mine`.
    #[inline(always)]
    pub const fn until(revoked: &'a AtomicU64, mine: u64) -> Self {
        Self { revoked: Some(revoked), mine }
    }

    /// Whether the right still holds.
    #[inline(always)]
    pub fn holds(&self) -> bool {
        // PAIRS(eviction): acquire here (with the fence before it), release where it is revoked.
        self.revoked.is_none_or(|word| word.load(Ordering::Acquire) != self.mine)
    }
}

impl<'a> Message<'a> {
    /// A message of `stream`; made by transports.
    #[inline(always)]
    pub const fn new(bytes: &'a [u8], stream: &'a Stream, lease: Lease<'a>) -> Self {
        Self { bytes, stream, lease }
    }

    /// The payload, as the publisher wrote it; [`is_intact`](Self::is_intact) tells after the
    /// use whether it still was.
    #[inline(always)]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Which publisher and topic it is from.
    #[inline(always)]
    pub const fn stream(&self) -> &'a Stream {
        self.stream
    }

    /// Copies the payload; for what is kept or passed on.
    ///
    /// # Errors
    /// If it was overwritten meanwhile; [`Event::Lost`] follows.
    pub fn to_vec(&self) -> Result<Vec<u8>, Overwritten> {
        let mut bytes = Vec::new();
        self.copy_into(&mut bytes).map(|()| bytes)
    }

    /// Copies the payload into `buffer`, whose old contents go.
    ///
    /// # Errors
    /// If it was overwritten meanwhile; [`Event::Lost`] follows, and the buffer is empty.
    #[inline]
    pub fn copy_into(&self, buffer: &mut Vec<u8>) -> Result<(), Overwritten> {
        buffer.clear();
        buffer.extend_from_slice(self.bytes);
        if self.is_intact() {
            Ok(())
        } else {
            buffer.clear();
            Err(Overwritten)
        }
    }

    /// Whether the bytes read so far are still those that were published.
    ///
    /// Always true unless this subscriber's place has been taken away in the middle of its
    /// handler, see [`Message`]. Ask after the use; the next event of an evicted subscriber is
    /// [`Event::Lost`].
    #[inline]
    pub fn is_intact(&self) -> bool {
        // PAIRS(eviction): keeps the reads of the body before the look at the lease.
        lanecast_base::sync::fence(Ordering::Acquire);
        self.lease.holds()
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("stream", &self.stream)
            .field("length", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

/// A message was overwritten while it was read: its publisher has taken the reader's place away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overwritten;

impl fmt::Display for Overwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the message was overwritten while it was read: this subscriber was evicted")
    }
}

impl std::error::Error for Overwritten {}

/// Messages that are lost to this subscriber.
#[derive(Clone, Copy, Debug)]
pub struct Gap<'a> {
    /// The stream they belong to.
    pub stream: &'a Stream,
    /// The first lost one, counted from 0 at this subscriber's first message of the stream's
    /// session.
    pub first: u64,
    /// How many, where the transport can know.
    pub count: Option<u64>,
    /// Why.
    pub why: LossReason,
}

/// Why messages are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossReason {
    /// The publisher took this subscriber's place away, because it had stalled.
    Evicted,
    /// What the publisher left behind makes no sense.
    Damaged,
    /// They were asked for again and again, and the time for that is over.
    GaveUp,
    /// The publisher does not keep them any more.
    Gone,
    /// The publisher went on without this subscriber, which was too slow.
    Skipped,
}

impl LossReason {
    /// The reason in words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Evicted => "this subscriber stalled and was evicted",
            Self::Damaged => "the stream's memory is damaged",
            Self::GaveUp => "no repair came in time",
            Self::Gone => "the publisher does not keep them any more",
            Self::Skipped => "this subscriber was too slow, and the publisher did not wait",
        }
    }
}

/// Why a stream is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// The publisher closed it.
    Closed,
    /// The publisher's process ended without closing it.
    Died,
    /// The publisher took this subscriber's place away, because it had stalled.
    Evicted,
    /// What the publisher left behind makes no sense.
    Damaged,
    /// The publisher has no place for this subscriber.
    Refused,
}

impl CloseReason {
    /// The reason in words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Died => "died",
            Self::Evicted => "evicted",
            Self::Damaged => "damaged",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.describe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SessionId, TopicId};

    #[test]
    fn a_copy_is_whole_or_none() {
        let evicted = AtomicU64::new(0);
        let stream = Stream {
            session: SessionId(1),
            topic: "t".into(),
            topic_id: TopicId(0),
            pid: 1,
            source: "shm:1".into(),
        };
        let message = Message::new(b"whole", &stream, Lease::until(&evicted, 3));
        let mut buffer = b"what was before".to_vec();
        assert_eq!(
            (message.to_vec(), message.copy_into(&mut buffer)),
            (Ok(b"whole".to_vec()), Ok(()))
        );
        assert_eq!(buffer, b"whole");
        evicted.store(3, Ordering::Relaxed);
        assert_eq!(message.to_vec(), Err(Overwritten));
        assert_eq!(message.copy_into(&mut buffer), Err(Overwritten));
        assert!(buffer.is_empty(), "nothing is left to be taken for the message");
    }
}
