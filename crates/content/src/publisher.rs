//! Publisher: carries every message to subscribers without a filter, and matching ones to those
//! with one.

use crate::claim::{FilterableBatch, FilterableClaim};
use crate::error::OpenError;
use crate::matching::{Matching, find_room, try_find_room};
use crate::settings::ContentSettings;
use lanecast_os::epoll::Epoll;
use lanecast_transport::{
    Claim, ClaimError, Completion, IncompleteSubscriber, Publish, PublisherEvent, SessionId,
    Stream, Subscribe, SubscriberId, SubscriberInfo, TopicId, Transport,
};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Interval of serving filter requests while waiting.
const SERVE_INTERVAL: Duration = Duration::from_millis(1);

/// A publisher that serves filters: subscribers without a filter receive every message, those with
/// one the messages that match it. Each message is evaluated once, however many filters there are,
/// and not at all while there is none.
///
/// It is a publisher like any other: claims are written in place and evaluated when they are
/// committed. A message that cannot be read as the message type of its settings matches no filter,
/// and [counts](Self::malformed_messages). Only the topic it was opened with serves filters; an
/// [added](Publish::add_topic) one reaches its subscribers whole, filtered at their end.
///
/// Filter requests are handled by claims, waits, `poll_events` and
/// [`serve_filters`](Self::serve_filters). An idle
/// publisher has to call the latter regularly, or new filters wait for its next message.
pub struct Publisher<C: Transport> {
    /// The session with every message.
    all: C::Publisher,
    matching: Matching<C>,
    /// The topic it was opened with, which bears another name in its sessions.
    topic: String,
    /// The descriptors of both sessions, once asked for.
    wakeup: Option<Epoll>,
}

impl<C: Transport> Publisher<C> {
    /// Opens a publisher of `topic`.
    ///
    /// # Errors
    ///
    /// If the transport fails.
    pub fn new(
        transport: &C,
        topic: &str,
        settings: ContentSettings,
    ) -> Result<Self, OpenError<C::Error>> {
        // Refused as any publisher's: the topics of its sessions have more than this name.
        if topic.is_empty() {
            drop(transport.publisher(topic).map_err(OpenError::Transport)?);
        }
        let matching = Matching::new(transport, topic, settings)?;
        let all = transport.publisher(&Stream::unfiltered_topic(topic));
        let all = all.map_err(OpenError::Transport)?;
        Ok(Self { all, matching, topic: topic.to_owned(), wakeup: None })
    }

    /// Number of different filters in force.
    pub fn filters(&self) -> usize {
        self.matching.filters()
    }

    /// Number of malformed filter requests.
    pub const fn malformed_frames(&self) -> u64 {
        self.matching.malformed_frames()
    }

    /// Number of published messages that could not be read as the topic's message type while there
    /// were filters, and so matched none.
    pub const fn malformed_messages(&self) -> u64 {
        self.matching.malformed_messages()
    }

    /// Number of evaluations: a message is matched once against all filters together, and not at
    /// all while there is no filter.
    pub const fn evaluations(&self) -> u64 {
        self.matching.evaluations()
    }

    /// Number of matching messages that were not published to subscribers with a filter: one that
    /// was given up came back, and took the room that was promised to them. Each such subscriber is
    /// told of the loss.
    pub const fn unpublished_matches(&self) -> u64 {
        self.matching.unpublished()
    }

    /// The session of the matching messages: subscribers with a filter see it as the session of
    /// this publisher's streams, and those without one see [`Publish::session`].
    pub fn matching_session(&self) -> SessionId {
        self.matching.session_id()
    }

    /// A descriptor that is readable when there may be filter requests to
    /// [serve](Self::serve_filters), for event loops of idle publishers; see
    /// [`Subscribe::wakeup`].
    ///
    /// # Errors
    ///
    /// If the process has no free descriptor, or the system refuses a thread.
    pub fn requests_wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        self.matching.control().wakeup()
    }

    /// Handles filter requests and departures of subscribers, without blocking; returns their
    /// number.
    pub fn serve_filters(&mut self) -> usize {
        self.matching.serve()
    }

    /// Has `find` find room for the frame of a message, if filters are evaluated on `topic`.
    #[inline]
    fn reserve(
        &mut self,
        topic: TopicId,
        len: usize,
        find: impl FnMut(&mut C::Publisher, usize) -> Result<(), ClaimError>,
    ) -> Result<(), ClaimError> {
        if topic != TopicId::FIRST {
            self.matching.settle();
            return Ok(());
        }
        self.matching.serve_sometimes();
        self.matching.reserve(len, find)
    }

    /// Makes the descriptor of the session with every message unreadable, or wait for further
    /// progress, if there is one: it may tell of room that a claim was refused before, and only a
    /// claim there takes that back.
    #[inline]
    fn settle_all(&mut self, topic: TopicId, len: usize) {
        if self.wakeup.is_some() {
            let _ = self.all.try_claim_on(topic, len).map(Claim::abort);
        }
    }
}

impl<C: Transport + 'static> Publish for Publisher<C> {
    type Claim<'a> = FilterableClaim<'a, C>;
    type Batch<'a> = FilterableBatch<'a, C>;
    type TopicError = <C::Publisher as Publish>::TopicError;

    fn add_topic(&mut self, name: &str) -> Result<TopicId, Self::TopicError> {
        if name == self.topic {
            return Ok(TopicId::FIRST);
        }
        self.all.add_topic(name)
    }

    #[inline]
    fn try_claim_on(
        &mut self,
        topic: TopicId,
        len: usize,
    ) -> Result<FilterableClaim<'_, C>, ClaimError> {
        if let Err(refused) = self.reserve(topic, len, try_find_room) {
            self.settle_all(topic, len);
            return Err(refused);
        }
        let room = self.all.try_claim_on(topic, len)?;
        Ok(FilterableClaim::new(room, &mut self.matching, topic))
    }

    #[inline]
    fn claim_on(
        &mut self,
        topic: TopicId,
        len: usize,
    ) -> Result<FilterableClaim<'_, C>, ClaimError> {
        self.reserve(topic, len, find_room)?;
        let room = self.all.claim_on(topic, len)?;
        Ok(FilterableClaim::new(room, &mut self.matching, topic))
    }

    /// Reaches subscribers without a filter only.
    fn try_send_uncounted(&mut self, bytes: &[u8]) -> Result<(), ClaimError> {
        self.all.try_send_uncounted(bytes)?;
        self.matching.skip_number();
        Ok(())
    }

    fn batch(&mut self) -> FilterableBatch<'_, C> {
        self.matching.serve_sometimes();
        self.settle_all(TopicId::FIRST, 0);
        FilterableBatch::new(self.all.batch(), &mut self.matching)
    }

    fn pack(&mut self) {
        self.all.pack();
        self.matching.session().pack();
    }

    fn send_packed(&mut self) {
        self.all.send_packed();
        self.matching.session().send_packed();
    }

    fn keep_warm(&mut self) {
        self.all.keep_warm();
        self.matching.session().keep_warm();
    }

    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        let set = match self.wakeup.take() {
            Some(set) => set,
            None => {
                let set = Epoll::new()?;
                set.add(self.all.wakeup()?, 0)?;
                set.add(self.matching.session().wakeup()?, 1)?;
                set
            }
        };
        let set: &Epoll = self.wakeup.insert(set);
        Ok(set.as_fd())
    }

    fn session(&self) -> SessionId {
        self.all.session()
    }

    fn source(&self) -> &str {
        self.all.source()
    }

    fn longest_message(&self) -> usize {
        self.all.longest_message().min(self.matching.longest_message())
    }

    /// Joined subscribers; one with a filter counts while its filter is in force.
    fn subscribers(&self) -> usize {
        self.all.subscribers() + self.matching.subscribers()
    }

    fn wait_for_subscribers(&mut self, count: usize, timeout: Duration) -> bool {
        let start = Instant::now();
        loop {
            self.matching.serve();
            if self.subscribers() >= count {
                return true;
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return false;
            }
            // The wait is for more than there can be: it drives the session until it is time to
            // serve again.
            let _ =
                self.matching.session().wait_for_subscribers(usize::MAX, left.min(SERVE_INTERVAL));
        }
    }

    fn poll_events(&mut self, mut handler: impl FnMut(PublisherEvent<'_>)) -> usize {
        self.matching.serve();
        let all = self.all.poll_events(&mut handler);
        let matching = self.matching.session().poll_events(|event| match event {
            PublisherEvent::SubscriberJoined(info) => {
                handler(PublisherEvent::SubscriberJoined(&filtering(info.clone())));
            }
            PublisherEvent::SubscriberLeft(info, reason) => {
                handler(PublisherEvent::SubscriberLeft(&filtering(info.clone()), reason));
            }
            other => handler(other),
        });
        all + matching
    }

    fn drain(&mut self, timeout: Duration) -> Completion {
        let start = Instant::now();
        self.matching.serve();
        let mut completion = self.all.drain(timeout);
        let left = timeout.saturating_sub(start.elapsed());
        let mut matching = self.matching.session().drain(left);
        // What was read has made room for the word of messages that were not sent.
        if self.matching.owes_withdrawals() && self.matching.withdraw_void() {
            let left = timeout.saturating_sub(start.elapsed());
            matching = self.matching.session().drain(left);
        }
        completion.add_complete(matching.complete());
        completion.add_omitted(matching.omitted());
        for IncompleteSubscriber { subscriber, reason } in matching.incomplete() {
            completion.add_incomplete(filtering(subscriber.clone()), *reason);
        }
        completion
    }

    fn close(mut self, linger: Duration) -> Completion {
        // Both sessions are drained before either is closed: dropping them then closes them.
        self.drain(linger)
    }
}

/// A subscriber with a filter, with an id that none without has.
fn filtering(info: SubscriberInfo) -> SubscriberInfo {
    SubscriberInfo { id: SubscriberId(info.id.0 | 1 << 62), ..info }
}

impl<C: Transport> fmt::Debug for Publisher<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("source", &self.all.source())
            .field("filters", &self.filters())
            .finish_non_exhaustive()
    }
}
