//! Subscriber: requests its filter from each publisher and reads the matching messages.

use crate::error::OpenError;
use crate::event::{Event, FilteredMessage};
use crate::settings::ContentSettings;
use crate::topics::{control_topic, data_topic};
use lanecast_filter::Filter;
use lanecast_transport::{self as transport, Claim, Publish, SessionId, Subscribe, Transport};
use lanecast_wire::content::ContentFrame;
use std::time::{Duration, Instant};

/// Subscriber with a filter, to all publishers of its topic.
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
    negotiations: Vec<(SessionId, FilterNegotiation)>,
    malformed_frames: u64,
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
        let control = transport.publisher(&control_topic(topic)).map_err(OpenError::Transport)?;
        let feed = transport.subscriber(&[&data_topic(topic)]).map_err(OpenError::Transport)?;
        let state = Negotiations {
            session: control.session().0,
            negotiations: Vec::new(),
            malformed_frames: 0,
        };
        let (filter, retry_interval) = (filter.to_owned(), settings.retry_interval);
        Ok(Self { feed, control, filter, state, retry_interval, requested_at: None })
    }

    /// Passes new events to `handler`, from at most `limit` messages of the transport, and repeats
    /// unanswered filter requests. Never blocks. Returns the number of transport messages,
    /// including those of other filters.
    pub fn poll(&mut self, limit: usize, mut handler: impl FnMut(Event<'_>)) -> usize {
        let state = &mut self.state;
        let work = self.feed.poll(limit, |event| state.handle(event, &mut handler));
        if state
            .negotiations
            .iter()
            .any(|(_, negotiation)| *negotiation == FilterNegotiation::Requested)
        {
            self.request_filter();
        }
        work
    }

    /// As [`Subscribe::wait`], after a poll that returned `work`.
    pub fn wait(&mut self, work: usize) {
        self.feed.wait(work);
    }

    /// The transport's subscriber, for its own operations, such as rejoining a publisher that
    /// ejected this subscriber.
    pub const fn feed(&mut self) -> &mut C::Subscriber {
        &mut self.feed
    }

    /// Number of publishers.
    pub fn publishers(&self) -> usize {
        self.state.negotiations.len()
    }

    /// Number of publishers that apply the filter.
    pub fn active_publishers(&self) -> usize {
        let is_in_force =
            |it: &&(_, FilterNegotiation)| matches!(it.1, FilterNegotiation::Active(_));
        self.state.negotiations.iter().filter(is_in_force).count()
    }

    /// Number of malformed frames from publishers.
    pub const fn malformed_frames(&self) -> u64 {
        self.state.malformed_frames
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

impl Negotiations {
    #[inline]
    fn handle(&mut self, event: transport::Event<'_>, handler: &mut impl FnMut(Event<'_>)) {
        match event {
            transport::Event::Message(message) => self.message(message, handler),
            transport::Event::Joined(stream) => {
                self.negotiations.push((stream.session, FilterNegotiation::Requested));
                handler(Event::Joined(stream));
            }
            transport::Event::Lost(gap) => {
                handler(Event::Lost(gap));
                self.lose_filter(gap.stream, handler);
            }
            transport::Event::Left(stream, why) => {
                self.negotiations.retain(|(session, _)| *session != stream.session);
                handler(Event::Left(stream, why));
            }
            _ => {}
        }
    }

    #[inline]
    fn message(&mut self, whole: transport::Message<'_>, handler: &mut impl FnMut(Event<'_>)) {
        let stream = whole.stream();
        let negotiation = self.negotiation(stream).copied();
        let mark = match negotiation {
            Some(FilterNegotiation::Active(mark)) => Some(mark),
            _ => None,
        };
        // Read before the check: the frame borrows the buffer, and is used only if it was intact.
        let frame = ContentFrame::read(whole.bytes());
        if !whole.is_intact() {
            // The frame was read from an overwritten buffer; a loss event follows.
            return;
        }
        match frame {
            Some(ContentFrame::Message { marks, body }) => {
                if mark.is_some_and(|mark| marks.iter().any(|other| other.get() == mark)) {
                    handler(Event::Message(FilteredMessage { body, whole }));
                }
            }
            Some(ContentFrame::InForce { mark: new, session }) if session == self.session => {
                self.set_negotiation(stream, FilterNegotiation::Active(new));
                if mark != Some(new) {
                    handler(Event::FilterActive(stream));
                }
            }
            Some(ContentFrame::Refused { session, reason }) if session == self.session => {
                if negotiation == Some(FilterNegotiation::Requested) {
                    self.set_negotiation(stream, FilterNegotiation::Refused);
                    handler(Event::Refused(stream, reason));
                }
            }
            Some(ContentFrame::Withdrawn { mark: gone }) if mark == Some(gone) => {
                self.lose_filter(stream, handler);
            }
            Some(ContentFrame::Wanted { .. }) | None => self.malformed_frames += 1,
            // Answers to other subscribers.
            Some(_) => {}
        }
    }

    /// Marks the filter as lost and requests it again.
    fn lose_filter(&mut self, stream: &transport::Stream, handler: &mut impl FnMut(Event<'_>)) {
        if matches!(self.negotiation(stream), Some(FilterNegotiation::Active(_))) {
            self.set_negotiation(stream, FilterNegotiation::Requested);
            handler(Event::FilterLost(stream));
        }
    }

    fn negotiation(&mut self, stream: &transport::Stream) -> Option<&mut FilterNegotiation> {
        let mut negotiations = self.negotiations.iter_mut();
        negotiations
            .find(|(session, _)| *session == stream.session)
            .map(|(_, negotiation)| negotiation)
    }

    fn set_negotiation(&mut self, stream: &transport::Stream, now: FilterNegotiation) {
        if let Some(negotiation) = self.negotiation(stream) {
            *negotiation = now;
        }
    }
}
