//! Events of a subscriber.

use crate::stream::Stream;
use core::fmt;
use lanecast_base::sync::{AtomicU64, Ordering};

/// An event of a subscription.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A publisher of a subscribed topic joined: once per stream, before all its other events.
    Joined(&'a Stream),
    /// A message, read in place.
    Message(Message<'a>),
    /// Lost messages, before any later message of the stream.
    Lost(Gap<'a>),
    /// The stream ended: once per stream, after all its other events.
    Left(&'a Stream, CloseReason),
    /// The filter of this subscriber holds: from here on every matching message of the stream
    /// arrives. Only subscribers with a filter get this event and the next two.
    FilterActive(&'a Stream),
    /// The publisher refused the filter, with the reason in words: none of its messages arrive. The
    /// request is not repeated.
    FilterRefused(&'a Stream, &'a str),
    /// The filter no longer holds at the publisher, because messages were lost or the publisher
    /// took this subscriber for dead. Matching messages may be missing until the next
    /// [`FilterActive`](Self::FilterActive).
    FilterInactive(&'a Stream),
}

/// A message, read in place: valid inside the handler's call, or until the drop of its
/// [`Run`](crate::Run).
///
/// A publisher that evicts stalled subscribers may overwrite a message while it is read;
/// transports with such a policy deliver a checked copy, so the bytes are always whole. Without the
/// policy messages are read in place, and only a hostile writer of the shared gate can have them
/// overwritten, by making the publisher evict another subscriber. [`to_vec`](Self::to_vec) and
/// [`copy_into`](Self::copy_into) detect even that.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    bytes: &'a [u8],
    stream: &'a Stream,
    number: u64,
    lease: Lease<'a>,
}

/// The right to read in place, until the publisher evicts the reader.
#[derive(Clone, Copy, Debug)]
pub struct Lease<'a> {
    revoked: Option<&'a AtomicU64>,
    mine: u64,
}

impl<'a> Lease<'a> {
    /// A lease without an end.
    pub const FOR_GOOD: Lease<'static> = Lease { revoked: None, mine: 0 };

    /// A lease that ends when `revoked` holds `mine`.
    #[inline(always)]
    pub const fn until(revoked: &'a AtomicU64, mine: u64) -> Self {
        Self { revoked: Some(revoked), mine }
    }

    /// Whether the lease still holds.
    #[inline(always)]
    pub fn holds(&self) -> bool {
        // PAIRS(eviction): acquire here (with the fence before it), release where it is revoked.
        self.revoked.is_none_or(|word| word.load(Ordering::Acquire) != self.mine)
    }
}

impl<'a> Message<'a> {
    /// Message `number` of `stream`; made by transports.
    #[inline(always)]
    pub const fn new(bytes: &'a [u8], stream: &'a Stream, number: u64, lease: Lease<'a>) -> Self {
        Self { bytes, stream, number, lease }
    }

    /// The message as a layer above the transport presents it: with `bytes`, a part of its
    /// payload, as message `number` of `stream`.
    #[inline(always)]
    #[must_use]
    pub const fn presented(self, bytes: &'a [u8], stream: &'a Stream, number: u64) -> Self {
        Self { bytes, stream, number, ..self }
    }

    /// The payload as published; [`is_intact`](Self::is_intact) checks after the use that it was
    /// not overwritten.
    #[inline(always)]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Publisher and topic.
    #[inline(always)]
    pub const fn stream(&self) -> &'a Stream {
        self.stream
    }

    /// Number of this message among those that its publisher has published on its topic, from 0:
    /// the same for every subscriber, however late it joined, and over every transport.
    ///
    /// Each message of a stream has the number after its predecessor's, unless [`Event::Lost`]
    /// reports those in between. A subscriber with a filter does not get the messages in between
    /// that do not match: it sees the same numbers with holes, and no event tells of these.
    #[inline(always)]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Copies the payload, to keep it or pass it on.
    ///
    /// # Errors
    /// If it was overwritten during the copy; [`Event::Lost`] follows.
    pub fn to_vec(&self) -> Result<Vec<u8>, Overwritten> {
        let mut bytes = Vec::new();
        self.copy_into(&mut bytes).map(|()| bytes)
    }

    /// Copies the payload into `buffer`, replacing its contents.
    ///
    /// # Errors
    /// If it was overwritten during the copy; [`Event::Lost`] follows, and the buffer is empty.
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

    /// Whether the bytes read so far are the published ones.
    ///
    /// Always true unless this subscriber was evicted during its handler, see [`Message`]. Call it
    /// after the use; the next event of an evicted subscriber is [`Event::Lost`].
    #[inline]
    pub fn is_intact(&self) -> bool {
        // PAIRS(eviction): keeps the reads of the body before the read of the lease.
        lanecast_base::sync::fence(Ordering::Acquire);
        self.lease.holds()
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("stream", &self.stream)
            .field("number", &self.number)
            .field("length", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

/// A message was overwritten while it was read: the publisher evicted the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overwritten;

impl fmt::Display for Overwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the message was overwritten while it was read: this subscriber was evicted")
    }
}

impl std::error::Error for Overwritten {}

/// A range of messages that this subscriber lost.
///
/// The stream's next message, if one comes, has the number `first + count`. A publisher that
/// [died](CloseReason::Died) may have published more than its subscribers ever learn of: no gap
/// tells of messages that no number shows.
///
/// For a subscriber with a filter this is the range whose matching messages it did not get; how
/// many these are is not known to it. Its next message has the number `first + count` or a greater
/// one. Where the publisher evaluates the filter, the gap comes with the next
/// [`FilterActive`](Event::FilterActive), just before it, because the publisher tells the end of
/// the range then; [`FilterInactive`](Event::FilterInactive) tells of the loss at once. If the
/// stream ends before, `count` is the most matching messages that can be missing.
#[derive(Clone, Copy, Debug)]
pub struct Gap<'a> {
    /// The stream.
    pub stream: &'a Stream,
    /// [Number](Message::number) of the first lost message.
    pub first: u64,
    /// Number of lost messages, at least 1.
    pub count: u64,
    /// The reason.
    pub why: LossReason,
}

/// Reasons of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossReason {
    /// The publisher evicted this subscriber, which had stalled.
    Evicted,
    /// The publisher's memory is damaged.
    Damaged,
    /// Repeated NAKs brought no repair in time.
    GaveUp,
    /// The publisher no longer retains them.
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

/// Reasons of a stream's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// The publisher closed the stream.
    Closed,
    /// The publisher's process ended without closing it, or fell silent before this subscriber
    /// knew the number of its last messages.
    Died,
    /// The publisher evicted this subscriber, which had stalled.
    Evicted,
    /// The publisher's memory is damaged, or its messages contradict each other.
    Damaged,
    /// The publisher refused this subscriber.
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
        let message = Message::new(b"whole", &stream, 7, Lease::until(&evicted, 3));
        assert_eq!(message.number(), 7);
        let mut buffer = b"what was before".to_vec();
        assert_eq!(
            (message.to_vec(), message.copy_into(&mut buffer)),
            (Ok(b"whole".to_vec()), Ok(()))
        );
        assert_eq!(buffer, b"whole");
        evicted.store(3, Ordering::Relaxed);
        assert_eq!(message.to_vec(), Err(Overwritten));
        assert_eq!(message.copy_into(&mut buffer), Err(Overwritten));
        assert!(buffer.is_empty(), "no partial message is left");
    }
}
