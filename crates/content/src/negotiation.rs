//! The publishers of a subscriber with a filter, and what became of its request at each.
//!
//! Owned by the subscriber, on its thread. A run of messages selects with it by reference; all
//! other events change it.

use crate::filters::Filters;
use crate::topics::topic_of_content;
use lanecast_transport::{Event, Gap, LossReason, Message, SessionId, Stream, TopicId};
use lanecast_wire::content::{CONTENT_VERSION, ContentFrame, ContentFrameError};
use std::cell::{Cell, RefCell};
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
    /// Number after the last frame that was read while the filter was active: every matching
    /// message before it was yielded. Runs count by reference.
    next: Cell<u64>,
    /// The loss that made the filter inactive, until its range is known.
    loss: Option<PendingLoss>,
}

/// A loss from [`FilterPublisher::next`] on whose end is not known yet.
#[derive(Clone, Copy, Debug)]
struct PendingLoss {
    /// Frames that the transport reported as lost.
    frames: u64,
    why: LossReason,
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
    /// Negotiations of a subscriber whose filter `local` has.
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
                Some(index) => self.lose_filter(index, (gap.count, gap.why), handler),
                None => handler(event),
            },
            Event::Left(stream, why) => match self.publisher(stream) {
                Some(index) => {
                    let mut left = self.publishers.remove(index);
                    left.end_loss(None, handler);
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
        let at = self.publishers.partition_point(|it| it.key() < key(&stream));
        self.publishers.insert(at, FilterPublisher::new(stream));
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
            Ok(ContentFrame::InForce { mark: new, session, next })
                if Some(session) == publisher.control =>
            {
                let mark = publisher.mark();
                publisher.end_loss(Some(next), handler);
                publisher.negotiation = FilterNegotiation::Active(new);
                if mark != Some(new) {
                    handler(Event::FilterActive(&publisher.stream));
                }
            }
            Ok(ContentFrame::Refused { session, reason }) if Some(session) == publisher.control => {
                publisher.refuse(reason, handler);
            }
            Ok(ContentFrame::Withdrawn { mark }) if publisher.mark() == Some(mark) => {
                self.lose_filter(index, (0, LossReason::Skipped), handler);
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

    /// Marks the filter as lost, with so many frames, and requests it again. Before the filter is
    /// active a subscriber is owed no message, and loses none.
    fn lose_filter(
        &mut self,
        index: usize,
        (frames, why): (u64, LossReason),
        handler: &mut impl FnMut(Event<'_>),
    ) {
        let publisher = &mut self.publishers[index];
        if let Some(loss) = &mut publisher.loss {
            loss.frames = loss.frames.saturating_add(frames);
        }
        if matches!(publisher.negotiation, FilterNegotiation::Active(_)) {
            publisher.negotiation = FilterNegotiation::Requested;
            publisher.loss = Some(PendingLoss { frames, why });
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
    /// The filter is to be requested from the publisher of `stream`.
    const fn new(stream: Stream) -> Self {
        let (negotiation, next) = (FilterNegotiation::Requested, Cell::new(0));
        Self { stream, negotiation, control: None, next, loss: None }
    }

    /// Reports the pending loss, if there is one: up to the message `next`, or, if that is not
    /// known, as many messages as frames were lost. From `next` on every matching message arrives.
    fn end_loss(&mut self, next: Option<u64>, handler: &mut impl FnMut(Event<'_>)) {
        let first = self.next.get();
        if let Some(PendingLoss { frames, why }) = self.loss.take() {
            // Bounded: no hostile number makes the end of the range overflow.
            let frames = frames.min(u64::MAX - first);
            let count = next.map_or(frames, |next| next.saturating_sub(first));
            if count > 0 {
                handler(Event::Lost(Gap { stream: &self.stream, first, count, why }));
            }
        }
        self.next.set(first.max(next.unwrap_or(first)));
    }

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
            self.end_loss(None, handler);
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
    let Ok(ContentFrame::Message { number, marks, body }) = frame else { return Selection::Other };
    let Some(mark) = publisher.mark() else { return Selection::Skipped };
    publisher.next.set(publisher.next.get().max(number.saturating_add(1)));
    match marks.iter().any(|other| other.get() == mark) {
        true => Selection::Message(whole.presented(body, &publisher.stream, number)),
        false => Selection::Skipped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ContentSettings;
    use lanecast_filter::message_type::MessageType;
    use lanecast_transport::{CloseReason, Lease};
    use zerocopy::little_endian::U16;

    const CONTROL: u64 = 9;
    const MARK: u16 = 3;

    /// A subscriber's negotiations with one publisher, and the events that came of its frames.
    struct World {
        state: Negotiations,
        stream: Stream,
        seen: Vec<String>,
    }

    impl World {
        fn new() -> Self {
            let local = Filters::new("t", ContentSettings::new(MessageType::Json));
            let stream = Stream {
                session: SessionId(1),
                topic: "t?content".to_owned(),
                topic_id: TopicId::FIRST,
                pid: 1,
                source: "here".to_owned(),
            };
            let mut world = Self { state: Negotiations::new(local), stream, seen: Vec::new() };
            world.on(Event::Joined);
            world.state.set_control("t", CONTROL);
            world
        }

        fn on<'a>(&'a mut self, event: impl FnOnce(&'a Stream) -> Event<'a>) {
            let Self { state, stream, seen } = self;
            state.handle(event(stream), &mut |event| {
                seen.push(match event {
                    Event::Joined(stream) => format!("joined {}", stream.topic),
                    Event::Message(message) => format!("message {}", message.number()),
                    Event::Lost(Gap { first, count, why, .. }) => {
                        format!("lost {first}..{} {why:?}", first + count)
                    }
                    Event::FilterActive(_) => "active".to_owned(),
                    Event::FilterInactive(_) => "inactive".to_owned(),
                    Event::FilterRefused(_, reason) => format!("refused {reason}"),
                    Event::Left(_, why) => format!("left {why}"),
                    other => panic!("{other:?}"),
                });
            });
        }

        fn frame(&mut self, frame: &ContentFrame<'_>) {
            let mut bytes = vec![0; frame.len()];
            frame.write(&mut bytes);
            // The transport's own number, which counts frames.
            self.on(|stream| Event::Message(Message::new(&bytes, stream, 77, Lease::FOR_GOOD)));
        }

        fn message(&mut self, number: u64, mark: u16) {
            self.frame(&ContentFrame::Message { number, marks: &[U16::new(mark)], body: b"{}" });
        }

        fn in_force(&mut self, next: u64) {
            self.frame(&ContentFrame::InForce { mark: MARK, session: CONTROL, next });
        }

        fn lose(&mut self, count: u64) {
            let why = LossReason::GaveUp;
            self.on(|stream| Event::Lost(Gap { stream, first: 50, count, why }));
        }

        fn seen(&mut self) -> Vec<String> {
            std::mem::take(&mut self.seen)
        }
    }

    /// A gap spans the publisher's numbers from the last frame that was read to the message from
    /// which on the filter holds again.
    #[test]
    fn gaps_are_ranges_of_the_publisher_s_numbers() {
        let mut world = World::new();
        world.lose(4);
        world.message(7, MARK);
        assert_eq!(world.seen(), ["joined t"], "nothing is owed before the filter is active");
        world.in_force(10);
        world.lose(1);
        assert_eq!(world.seen(), ["active", "inactive"]);
        world.in_force(12);
        assert_eq!(world.seen(), ["lost 10..12 GaveUp", "active"], "no frame since the answer");
        world.message(12, MARK);
        world.message(20, MARK + 1);
        world.lose(2);
        world.message(25, MARK);
        world.lose(3);
        assert_eq!(world.seen(), ["message 12", "inactive"]);
        world.in_force(40);
        world.message(40, MARK);
        assert_eq!(world.seen(), ["lost 21..40 GaveUp", "active", "message 40"]);
        world.lose(1);
        world.in_force(41);
        assert_eq!(world.seen(), ["inactive", "active"], "a control frame alone was lost");
    }

    #[test]
    fn a_withdrawn_mark_loses_what_was_published_meanwhile() {
        let mut world = World::new();
        world.in_force(0);
        world.message(0, MARK);
        world.frame(&ContentFrame::Withdrawn { mark: MARK });
        world.in_force(5);
        let wanted = ["joined t", "active", "message 0", "inactive", "lost 1..5 Skipped", "active"];
        assert_eq!(world.seen(), wanted);
        world.frame(&ContentFrame::Withdrawn { mark: MARK });
        world.in_force(5);
        assert_eq!(world.seen(), ["inactive", "active"]);
    }

    #[test]
    fn a_gap_without_an_end_is_reported_before_the_stream_ends() {
        for is_refused in [false, true] {
            let mut world = World::new();
            world.in_force(3);
            world.message(8, MARK);
            world.lose(2);
            world.seen();
            if is_refused {
                world.frame(&ContentFrame::Refused { session: CONTROL, reason: "no" });
                assert_eq!(world.seen(), ["lost 9..11 GaveUp", "refused no"]);
            }
            world.on(|stream| Event::Left(stream, CloseReason::Closed));
            let left = ["left closed".to_owned()];
            match is_refused {
                true => assert_eq!(world.seen(), left),
                false => assert_eq!(world.seen(), ["lost 9..11 GaveUp", &left[0]]),
            }
        }
    }

    /// Numbers of a hostile publisher end where numbers end.
    #[test]
    fn numbers_may_be_any() {
        let mut world = World::new();
        world.in_force(u64::MAX);
        world.message(u64::MAX, MARK);
        world.lose(u64::MAX);
        world.lose(u64::MAX);
        world.in_force(0);
        let last = format!("message {}", u64::MAX);
        assert_eq!(world.seen(), ["joined t", "active", &last, "inactive", "active"]);
        world.lose(u64::MAX);
        world.on(|stream| Event::Left(stream, CloseReason::Died));
        assert_eq!(world.seen(), ["inactive", "left died"], "no number is left to lose");
    }
}
