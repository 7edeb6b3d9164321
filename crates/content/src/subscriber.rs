//! Subscriber: requests its filter from each publisher and reads the matching messages.

use crate::error::OpenError;
use crate::filters::Filters;
use crate::settings::ContentSettings;
use crate::topics::{content_topic, control_topic, topic_of_content};
use lanecast_filter::Filter;
use lanecast_transport::{
    Claim, Event, Gap, Message, Publish, SessionId, Stream, Subscribe, Transport,
};
use lanecast_wire::content::ContentFrame;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Subscriber with a filter, to all publishers of its topic.
///
/// Publishers that serve filters evaluate it and send the matching messages only; on the messages
/// of others the subscriber evaluates it itself. Either way each stream has the events of any
/// subscriber and, before its first message, [`Event::FilterActive`].
#[derive(Debug)]
pub struct Subscriber<C: Transport> {
    feed: C::Subscriber,
    control: C::Publisher,
    filter: String,
    state: Negotiations,
    retry_interval: Duration,
    requested_at: Option<Instant>,
}

/// Negotiation of the filter with each publisher.
#[derive(Debug)]
struct Negotiations {
    /// Session of this subscriber's control publisher; answers name it.
    session: u64,
    /// Publishers that serve filters.
    publishers: Vec<FilterPublisher>,
    /// Streams of publishers that serve none.
    unfiltered: usize,
    /// The filter, for messages of publishers that serve none.
    local: Filters,
    found: Vec<u32>,
    malformed_frames: u64,
    malformed_messages: u64,
}

#[derive(Debug)]
struct FilterPublisher {
    /// The stream as subscribers see it, with the name of the topic.
    stream: Stream,
    negotiation: FilterNegotiation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilterNegotiation {
    Requested,
    Active(u16),
    Refused,
}

impl<C: Transport> Subscriber<C> {
    /// Opens a subscriber to the messages of `topic` that match `filter`.
    ///
    /// # Errors
    ///
    /// If the filter is malformed or depends on the time, or the transport fails.
    pub fn new(
        transport: &C,
        topic: &str,
        filter: &str,
        settings: &ContentSettings,
    ) -> Result<Self, OpenError<C::Error>> {
        if !Filter::parse_with(filter, &settings.limits)?.is_deterministic() {
            return Err(OpenError::TimeDependent);
        }
        let mut local = Filters::new(topic, settings.clone());
        local.subscribe(SessionId(0), filter).map_err(OpenError::Limits)?;
        let control = transport.publisher(&control_topic(topic)).map_err(OpenError::Transport)?;
        let feed =
            transport.subscriber(&[topic, &content_topic(topic)]).map_err(OpenError::Transport)?;
        let state = Negotiations {
            session: control.session().0,
            publishers: Vec::new(),
            unfiltered: 0,
            local,
            found: Vec::new(),
            malformed_frames: 0,
            malformed_messages: 0,
        };
        let (filter, retry_interval) = (filter.to_owned(), settings.retry_interval);
        Ok(Self { feed, control, filter, state, retry_interval, requested_at: None })
    }

    /// The transport's subscriber, for its own operations, such as rejoining a publisher that
    /// ejected this subscriber.
    pub const fn feed(&mut self) -> &mut C::Subscriber {
        &mut self.feed
    }

    /// Number of streams in which the filter is active.
    pub fn active_streams(&self) -> usize {
        let is_active =
            |it: &&FilterPublisher| matches!(it.negotiation, FilterNegotiation::Active(_));
        self.state.unfiltered + self.state.publishers.iter().filter(is_active).count()
    }

    /// Number of malformed frames from publishers that serve filters.
    pub const fn malformed_frames(&self) -> u64 {
        self.state.malformed_frames
    }

    /// Number of messages from publishers that serve no filters that could not be read as the
    /// message type of the settings, and so did not match.
    pub const fn malformed_messages(&self) -> u64 {
        self.state.malformed_messages
    }

    fn request_filter(&mut self) {
        if self
            .requested_at
            .is_some_and(|requested_at| requested_at.elapsed() < self.retry_interval)
        {
            return;
        }
        self.requested_at = Some(Instant::now());
        let frame = ContentFrame::Wanted { filter: &self.filter };
        // Without room the request is sent at the next poll.
        if let Ok(mut claim) = self.control.try_claim(frame.len()) {
            frame.write(&mut claim);
            claim.commit();
        }
    }
}

impl<C: Transport + 'static> Subscribe for Subscriber<C> {
    /// Passes new events to `handler` and repeats unanswered filter requests. Never blocks.
    ///
    /// `limit` and the returned number count what the transport delivered, including messages that
    /// do not match.
    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, mut handler: F) -> usize {
        let state = &mut self.state;
        let work = self.feed.poll(limit, |event| state.handle(event, &mut handler));
        let is_requested =
            |it: &FilterPublisher| matches!(it.negotiation, FilterNegotiation::Requested);
        if self.state.publishers.iter().any(is_requested) {
            self.request_filter();
        }
        work
    }

    fn wait_at_most(&mut self, work: usize, limit: Duration) {
        self.feed.wait_at_most(work, limit);
    }

    fn longest_wait(&self) -> Duration {
        self.feed.longest_wait()
    }

    /// As [`Subscribe::wakeup`]. Until [`Event::FilterActive`] a loop polls every `retry_interval`
    /// besides, because a poll repeats requests that found no publisher listening.
    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        self.feed.wakeup()
    }

    fn streams(&self) -> usize {
        self.state.unfiltered + self.state.publishers.len()
    }
}

impl Negotiations {
    #[inline]
    fn handle(&mut self, event: Event<'_>, handler: &mut impl FnMut(Event<'_>)) {
        match event {
            Event::Message(message) => match self.publisher(message.stream()) {
                Some(index) => self.frame(index, message, handler),
                None => self.message(message, handler),
            },
            Event::Joined(stream) => self.join(stream, handler),
            Event::Lost(gap) => match self.publisher(gap.stream) {
                Some(index) => {
                    handler(Event::Lost(Gap { stream: &self.publishers[index].stream, ..gap }));
                    self.lose_filter(index, handler);
                }
                None => handler(event),
            },
            Event::Left(stream, why) => match self.publisher(stream) {
                Some(index) => {
                    let left = self.publishers.swap_remove(index);
                    handler(Event::Left(&left.stream, why));
                }
                None => {
                    self.unfiltered -= 1;
                    handler(event);
                }
            },
            _ => {}
        }
    }

    fn join(&mut self, stream: &Stream, handler: &mut impl FnMut(Event<'_>)) {
        let Some(topic) = topic_of_content(&stream.topic) else {
            self.unfiltered += 1;
            handler(Event::Joined(stream));
            handler(Event::FilterActive(stream));
            return;
        };
        let stream = Stream { topic: topic.to_owned(), ..stream.clone() };
        handler(Event::Joined(&stream));
        let negotiation = FilterNegotiation::Requested;
        self.publishers.push(FilterPublisher { stream, negotiation });
    }

    /// A message of a publisher that serves no filters.
    #[inline]
    fn message(&mut self, message: Message<'_>, handler: &mut impl FnMut(Event<'_>)) {
        let matched = self.local.matches(message.bytes(), &mut self.found);
        // An overwritten message is not judged; a loss event follows.
        if !message.is_intact() {
            return;
        }
        match matched {
            Ok(()) if self.found.is_empty() => {}
            Ok(()) => handler(Event::Message(message)),
            Err(_) => self.malformed_messages += 1,
        }
    }

    /// A frame of the publisher `index`, which serves filters.
    #[inline]
    fn frame(&mut self, index: usize, whole: Message<'_>, handler: &mut impl FnMut(Event<'_>)) {
        let publisher = &mut self.publishers[index];
        let mark = match publisher.negotiation {
            FilterNegotiation::Active(mark) => Some(mark),
            _ => None,
        };
        // Read before the check: the frame borrows the buffer, and is used only if it was intact.
        let frame = ContentFrame::read(whole.bytes());
        if !whole.is_intact() {
            // The frame was read from an overwritten buffer; a loss event follows.
            return;
        }
        match frame {
            Some(ContentFrame::Message { marks, body, .. }) => {
                if mark.is_some_and(|mark| marks.iter().any(|other| other.get() == mark)) {
                    handler(Event::Message(whole.presented(body, &publisher.stream)));
                }
            }
            Some(ContentFrame::InForce { mark: new, session }) if session == self.session => {
                publisher.negotiation = FilterNegotiation::Active(new);
                if mark != Some(new) {
                    handler(Event::FilterActive(&publisher.stream));
                }
            }
            Some(ContentFrame::Refused { session, reason }) if session == self.session => {
                if publisher.negotiation == FilterNegotiation::Requested {
                    publisher.negotiation = FilterNegotiation::Refused;
                    handler(Event::FilterRefused(&publisher.stream, reason));
                }
            }
            Some(ContentFrame::Withdrawn { mark: gone }) if mark == Some(gone) => {
                self.lose_filter(index, handler);
            }
            Some(ContentFrame::Wanted { .. }) | None => self.malformed_frames += 1,
            // Answers to other subscribers.
            Some(_) => {}
        }
    }

    /// Marks the filter as lost and requests it again.
    fn lose_filter(&mut self, index: usize, handler: &mut impl FnMut(Event<'_>)) {
        let publisher = &mut self.publishers[index];
        if matches!(publisher.negotiation, FilterNegotiation::Active(_)) {
            publisher.negotiation = FilterNegotiation::Requested;
            handler(Event::FilterInactive(&publisher.stream));
        }
    }

    /// Index of the publisher of `stream`, if it serves filters.
    #[inline]
    fn publisher(&self, stream: &Stream) -> Option<usize> {
        self.publishers.iter().position(|it| it.stream.session == stream.session)
    }
}
