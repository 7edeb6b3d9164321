//! The publisher of any transport.

use crate::claim::{Batch, Claim, ClaimError};
use crate::completion::Completion;
use crate::publisher_event::PublisherEvent;
use crate::stream::{SessionId, TopicId};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Room that a transport may take for one message beside its bytes.
const FRAME_OVERHEAD: usize = 64;

/// A publisher: one session, one or several topics.
///
/// Each topic's messages arrive in order. Those of several topics arrive in one order where
/// [`Transport::keeps_order_across_topics`](crate::Transport::keeps_order_across_topics) says so;
/// elsewhere a missing message delays only its own topic.
///
/// Claims borrow the publisher, so that it writes one message at a time; to publish from
/// several threads, wrap it in [`Shared`](crate::Shared).
pub trait Publish: Send + 'static {
    /// Room for one message.
    type Claim<'a>: Claim
    where
        Self: 'a;
    /// Several messages that become visible together.
    type Batch<'a>: Batch
    where
        Self: 'a;
    /// Errors of adding a topic.
    type TopicError: std::error::Error + Send + Sync + 'static;

    /// Adds a topic to this session; adding one twice gives the same number.
    ///
    /// # Errors
    /// If the name is empty or too long, or the session has no room for another topic.
    fn add_topic(&mut self, name: &str) -> Result<TopicId, Self::TopicError>;

    /// Room for a message of `len` bytes on `topic`, or the reason why there is none now.
    ///
    /// Never blocks and makes no system call, except for occasional liveness checks of blocking
    /// subscribers while back-pressured.
    ///
    /// # Errors
    /// See [`ClaimError`].
    fn try_claim_on(&mut self, topic: TopicId, len: usize) -> Result<Self::Claim<'_>, ClaimError>;

    /// As [`try_claim_on`](Self::try_claim_on), on the topic that the publisher was made with.
    ///
    /// # Errors
    /// See [`ClaimError`].
    #[inline(always)]
    fn try_claim(&mut self, len: usize) -> Result<Self::Claim<'_>, ClaimError> {
        self.try_claim_on(TopicId::FIRST, len)
    }

    /// Room for a message, waiting by the publisher's strategy while there is none.
    ///
    /// # Errors
    /// See [`ClaimError`]; never `BackPressured`.
    fn claim_on(&mut self, topic: TopicId, len: usize) -> Result<Self::Claim<'_>, ClaimError>;

    /// As [`claim_on`](Self::claim_on), on the topic that the publisher was made with.
    ///
    /// # Errors
    /// See [`ClaimError`]; never `BackPressured`.
    #[inline(always)]
    fn claim(&mut self, len: usize) -> Result<Self::Claim<'_>, ClaimError> {
        self.claim_on(TopicId::FIRST, len)
    }

    /// Starts a batch: several messages, published together.
    fn batch(&mut self) -> Self::Batch<'_>;

    /// Checks that `count` messages of `bytes` bytes in all have room on the topic that the
    /// publisher was made with, for layers that promise room before they know the messages. It
    /// stays until the publisher's next message, unlike that of an aborted claim, which a transport
    /// may have found in a packet that it sends meanwhile. Only a subscriber that was given up and
    /// comes back may take it.
    ///
    /// # Errors
    /// See [`ClaimError`].
    fn try_reserve(&mut self, count: usize, bytes: usize) -> Result<(), ClaimError> {
        let longest = self.longest_message();
        let mut left = bytes + count.saturating_sub(1) * FRAME_OVERHEAD;
        if count <= 1 || left <= longest {
            return self.try_claim(left).map(Claim::abort);
        }
        // Dropped: only the room counts.
        let mut batch = self.batch();
        while left > 0 {
            let part = left.min(longest);
            batch.try_add(TopicId::FIRST, part)?;
            left -= part;
        }
        Ok(())
    }

    /// Packs the messages that follow into as few system calls as the transport can, until
    /// [`send_packed`](Self::send_packed): for programs that know that several messages follow one
    /// another. Full packets leave before that. A program that stays away from its publisher
    /// delays them for a few milliseconds.
    ///
    /// Transports whose messages need no system call do nothing.
    ///
    /// ```no_run
    /// # use lanecast_transport::{ClaimError, Publish};
    /// # fn publish(publisher: &mut impl Publish, rows: &[&[u8]]) -> Result<(), ClaimError> {
    /// publisher.pack();
    /// for row in rows {
    ///     publisher.send(row)?;
    /// }
    /// publisher.send_packed();
    /// # Ok(())
    /// # }
    /// ```
    fn pack(&mut self) {}

    /// Sends the messages that wait since [`pack`](Self::pack), and packs no more.
    fn send_packed(&mut self) {}

    /// Keeps the way of messages warm in silence, where the transport does so and its publishers
    /// have no thread for it (`net.keep_warm`): for programs that call in a loop in which they have
    /// nothing to send. [`poll_events`](Self::poll_events) does the same.
    fn keep_warm(&mut self) {}

    /// Copies `bytes` into a message and publishes it, if there is room now.
    ///
    /// # Errors
    /// See [`ClaimError`].
    fn try_send_on(&mut self, topic: TopicId, bytes: &[u8]) -> Result<(), ClaimError> {
        let mut claim = self.try_claim_on(topic, bytes.len())?;
        claim.copy_from_slice(bytes);
        claim.commit();
        Ok(())
    }

    /// As [`try_send_on`](Self::try_send_on), on the topic that the publisher was made with.
    ///
    /// # Errors
    /// See [`ClaimError`].
    fn try_send(&mut self, bytes: &[u8]) -> Result<(), ClaimError> {
        self.try_send_on(TopicId::FIRST, bytes)
    }

    /// As [`try_send`](Self::try_send), and the reports of [`drain`](Self::drain) and
    /// [`close`](Self::close) do not count the message: a subscriber that has only such ones to
    /// read has read everything. For layers over a transport that talk with subscribers beside the
    /// program's messages, as rarely as these come and go. A publisher that does not say otherwise
    /// counts it.
    ///
    /// # Errors
    /// See [`ClaimError`].
    fn try_send_uncounted(&mut self, bytes: &[u8]) -> Result<(), ClaimError> {
        self.try_send(bytes)
    }

    /// Copies `bytes` into a message and publishes it, waiting for room.
    ///
    /// # Errors
    /// See [`ClaimError`]; never `BackPressured`.
    fn send_on(&mut self, topic: TopicId, bytes: &[u8]) -> Result<(), ClaimError> {
        let mut claim = self.claim_on(topic, bytes.len())?;
        claim.copy_from_slice(bytes);
        claim.commit();
        Ok(())
    }

    /// As [`send_on`](Self::send_on), on the topic that the publisher was made with.
    ///
    /// # Errors
    /// See [`ClaimError`]; never `BackPressured`.
    fn send(&mut self, bytes: &[u8]) -> Result<(), ClaimError> {
        self.send_on(TopicId::FIRST, bytes)
    }

    /// A descriptor for event loops (`poll`, `epoll`, mio, tokio's `AsyncFd`): readable when there
    /// may be room for a claim that was refused.
    ///
    /// It is unreadable until a claim returns
    /// [`BackPressured`](ClaimError::BackPressured). Then it becomes readable when a subscriber has
    /// made room, has left, or has died; no progress is missed, whether it comes before or after
    /// the loop goes to sleep. The next claim makes it unreadable again: it succeeds, or is
    /// refused and waits for further progress. Claims too long to ever succeed do not count. Asked
    /// for the first time after a refusal, it may be readable at once.
    ///
    /// It does not tell of subscribers that come and go: these events are derived from shared state
    /// when a publisher [polls](Self::poll_events), and a loop that wants them polls by a timer.
    ///
    /// The descriptor is the same for each call, and lives as long as the publisher: a loop adds it
    /// once, on any thread. Never read it. Publishers that never asked pay nothing; with a
    /// descriptor, a refused claim costs a few microseconds.
    ///
    /// # Errors
    /// If the process has no free descriptor, or the system refuses a thread.
    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>>;

    /// The id of the session.
    fn session(&self) -> SessionId;

    /// Address of the session, for people.
    fn source(&self) -> &str;

    /// The longest message, in bytes.
    fn longest_message(&self) -> usize;

    /// Number of joined subscribers.
    fn subscribers(&self) -> usize;

    /// Waits until at least `count` subscribers are joined; false if `timeout` passed first.
    #[must_use = "the subscribers may not have come"]
    fn wait_for_subscribers(&mut self, count: usize, timeout: Duration) -> bool;

    /// Gives pending events to `handler`: subscribers that joined and left since the last call, and
    /// room after back-pressure; returns their number. Never blocks.
    ///
    /// Each subscriber has one `SubscriberJoined` and one `SubscriberLeft`, in this order, also if
    /// it came and went between two calls. Nothing is queued for a publisher that never asks, and
    /// memory stays bounded for one that asks rarely: of the subscribers that came and went between
    /// two calls the latest 256 appear in events. A death shows up to the liveness time later.
    ///
    /// ```no_run
    /// # use lanecast_transport::{Publish, PublisherEvent};
    /// # fn log(publisher: &mut impl Publish) {
    /// publisher.poll_events(|event| match event {
    ///     PublisherEvent::SubscriberJoined(who) => println!("{who} joined"),
    ///     PublisherEvent::SubscriberLeft(who, why) => println!("{who} is gone: {why}"),
    ///     PublisherEvent::Writable => println!("room again"),
    ///     _ => {}
    /// });
    /// # }
    /// ```
    fn poll_events(&mut self, handler: impl FnMut(PublisherEvent<'_>)) -> usize;

    /// Waits until every living subscriber has read everything, at most `timeout`; reports which
    /// have, and which have not.
    fn drain(&mut self, timeout: Duration) -> Completion;

    /// Ends the session: lingers at most `linger` until all subscribers have read everything, then
    /// ends their streams. Reports which had read everything, and which had not.
    ///
    /// Dropping a publisher closes it without lingering.
    fn close(self, linger: Duration) -> Completion
    where
        Self: Sized;
}
