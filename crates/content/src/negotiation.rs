//! The publishers of a subscriber with a filter, and what became of its request at each.
//!
//! Owned by the subscriber, on its thread. A run of messages selects with it by reference; all
//! other events change it.

use crate::filters::Filters;
use crate::topics::topic_of_content;
use lanecast_transport::{Event, Gap, Message, SessionId, Stream, TopicId};
use lanecast_wire::content::{CONTENT_VERSION, ContentFrame, ContentFrameError};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Negotiation of the filter with each publisher.
#[derive(Debug)]
pub(crate) struct Negotiations {
    /// Publishers that serve filters, in the order of their sessions and topics.
    publishers: Vec<FilterPublisher>,
    /// Streams of publishers that serve none.
    unfiltered: usize,
    /// The filter, for messages of publishers that serve none; borrowed for one message at a time.
    local: RefCell<LocalFilter>,
    malformed_frames: u64,
    malformed_messages: u64,
}

#[derive(Debug)]
struct LocalFilter {
    filters: Filters,
    found: Vec<u32>,
}

#[derive(Debug)]
struct FilterPublisher {
    /// The stream as subscribers see it, with the name of the topic.
    stream: Stream,
    negotiation: FilterNegotiation,
    /// Session of the control publisher that requests the filter from it; answers name it. `None`
    /// until [`Negotiations::set_control`].
    control: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilterNegotiation {
    Requested,
    Active(u16),
    Refused,
}

/// An event of the transport, as the filter sees it.
#[derive(Debug)]
pub(crate) enum Selection<'a> {
    /// A matching message, as subscribers see it.
    Message(Message<'a>),
    /// A message without interest.
    Skipped,
    /// Another event, for [`Negotiations::note`].
    Other,
}

impl Negotiations {
    /// Of a subscriber whose filter `local` has.
    pub(crate) const fn new(local: Filters) -> Self {
        Self {
            publishers: Vec::new(),
            unfiltered: 0,
            local: RefCell::new(LocalFilter { filters: local, found: Vec::new() }),
            malformed_frames: 0,
            malformed_messages: 0,
        }
    }

    pub(crate) fn active_streams(&self) -> usize {
        let is_active =
            |it: &&FilterPublisher| matches!(it.negotiation, FilterNegotiation::Active(_));
        self.unfiltered + self.publishers.iter().filter(is_active).count()
    }

    /// Whether a publisher has not answered the request.
    #[inline]
    pub(crate) fn is_requesting(&self) -> bool {
        self.publishers.iter().any(FilterPublisher::is_requested)
    }

    /// Topics of publishers from which the filter is not requested yet.
    pub(crate) fn topics_without_control(&self) -> impl Iterator<Item = &str> {
        let without = self.publishers.iter().filter(|it| it.control.is_none());
        without.map(|it| it.stream.topic.as_str())
    }

    /// The filter is requested from the publishers of `topic` in `session`.
    pub(crate) fn set_control(&mut self, topic: &str, session: u64) {
        let publishers = self.publishers.iter_mut().filter(|it| it.stream.topic == topic);
        publishers.for_each(|it| it.control = Some(session));
    }

    /// Topics with a publisher that has not answered the request.
    pub(crate) fn requested_topics(&self) -> BTreeSet<&str> {
        let unanswered = self.publishers.iter().filter(|it| it.is_requested());
        unanswered.map(|it| it.stream.topic.as_str()).collect()
    }

    pub(crate) const fn malformed_frames(&self) -> u64 {
        self.malformed_frames
    }

    pub(crate) const fn malformed_messages(&self) -> u64 {
        self.malformed_messages
    }

    pub(crate) const fn streams(&self) -> usize {
        self.unfiltered + self.publishers.len()
    }

    #[inline]
    pub(crate) fn handle(&mut self, event: Event<'_>, handler: &mut impl FnMut(Event<'_>)) {
        match self.select(event) {
            Selection::Message(message) => handler(Event::Message(message)),
            Selection::Skipped => {}
            Selection::Other => self.note(event, handler),
        }
    }

    /// Selects `event` if it is a matching message.
    #[inline]
    pub(crate) fn select<'a>(&'a self, event: Event<'a>) -> Selection<'a> {
        let Event::Message(message) = event else { return Selection::Other };
        match self.publisher(message.stream()) {
            Some(index) => select_frame(&self.publishers[index], message),
            None => self.select_locally(message),
        }
    }

    /// Selects a message of a publisher that serves no filters.
    #[inline]
    fn select_locally<'a>(&self, message: Message<'a>) -> Selection<'a> {
        let LocalFilter { filters, found } = &mut *self.local.borrow_mut();
        let matched = filters.matches_on(&message.stream().topic, message.bytes(), found);
        match matched {
            // An overwritten message is not judged; a loss event follows.
            _ if !message.is_intact() => Selection::Skipped,
            Ok(()) if found.is_empty() => Selection::Skipped,
            Ok(()) => Selection::Message(message),
            Err(_) => Selection::Other,
        }
    }

    /// Notes an event that is [`Other`](Selection::Other), and passes on what it means to the
    /// application.
    pub(crate) fn note(&mut self, event: Event<'_>, handler: &mut impl FnMut(Event<'_>)) {
        match event {
            Event::Message(message) => match self.publisher(message.stream()) {
                Some(index) => self.note_frame(index, message, handler),
                None => self.malformed_messages += 1,
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
                    let left = self.publishers.remove(index);
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
        let at = self.publishers.partition_point(|it| it.key() < key(&stream));
        self.publishers.insert(at, FilterPublisher { stream, negotiation, control: None });
    }

    /// Notes an answer of the publisher `index`, which serves filters.
    fn note_frame(
        &mut self,
        index: usize,
        whole: Message<'_>,
        handler: &mut impl FnMut(Event<'_>),
    ) {
        let publisher = &mut self.publishers[index];
        // Read before the check: the frame borrows the buffer, and is used only if it was intact.
        let frame = ContentFrame::read(whole.bytes());
        if !whole.is_intact() {
            return;
        }
        match frame {
            Ok(ContentFrame::InForce { mark: new, session })
                if Some(session) == publisher.control =>
            {
                let mark = publisher.mark();
                publisher.negotiation = FilterNegotiation::Active(new);
                if mark != Some(new) {
                    handler(Event::FilterActive(&publisher.stream));
                }
            }
            Ok(ContentFrame::Refused { session, reason }) if Some(session) == publisher.control => {
                publisher.refuse(reason, handler);
            }
            Ok(ContentFrame::Withdrawn { mark }) if publisher.mark() == Some(mark) => {
                self.lose_filter(index, handler);
            }
            Err(ContentFrameError::Version(version)) => {
                self.malformed_frames += 1;
                let reason = format!(
                    "its filter negotiation is of version {version}, this subscriber reads \
                     version {CONTENT_VERSION}: use one version of lanecast"
                );
                publisher.refuse(&reason, handler);
            }
            Ok(ContentFrame::Wanted { .. }) | Err(ContentFrameError::Malformed) => {
                self.malformed_frames += 1;
            }
            // Answers to other subscribers.
            Ok(_) => {}
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
        self.publishers.binary_search_by_key(&key(stream), FilterPublisher::key).ok()
    }
}

const fn key(stream: &Stream) -> (SessionId, TopicId) {
    (stream.session, stream.topic_id)
}

impl FilterPublisher {
    const fn key(&self) -> (SessionId, TopicId) {
        key(&self.stream)
    }

    fn is_requested(&self) -> bool {
        self.negotiation == FilterNegotiation::Requested
    }

    /// Ends the request, unless it is answered already.
    fn refuse(&mut self, reason: &str, handler: &mut impl FnMut(Event<'_>)) {
        if self.is_requested() {
            self.negotiation = FilterNegotiation::Refused;
            handler(Event::FilterRefused(&self.stream, reason));
        }
    }

    /// The mark of matching messages.
    #[inline]
    const fn mark(&self) -> Option<u16> {
        match self.negotiation {
            FilterNegotiation::Active(mark) => Some(mark),
            _ => None,
        }
    }
}

/// Selects a frame of a publisher that serves filters.
#[inline]
fn select_frame<'a>(publisher: &'a FilterPublisher, whole: Message<'a>) -> Selection<'a> {
    // Read before the check: the frame borrows the buffer, and is used only if it was intact.
    let frame = ContentFrame::read(whole.bytes());
    if !whole.is_intact() {
        // The frame was read from an overwritten buffer; a loss event follows.
        return Selection::Skipped;
    }
    let Ok(ContentFrame::Message { marks, body, .. }) = frame else { return Selection::Other };
    match publisher.mark() {
        Some(mark) if marks.iter().any(|other| other.get() == mark) => {
            Selection::Message(whole.presented(body, &publisher.stream))
        }
        _ => Selection::Skipped,
    }
}
