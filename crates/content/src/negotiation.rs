//! The publishers of a subscriber with a filter, and what became of its request at each.
//!
//! Owned by the subscriber, on its thread. A run of messages selects with it by reference; all
//! other events change it, and queue the events that they mean to the application: a handler that
//! panics at one of them loses none of the others.

use crate::filter_publisher::FilterPublisher;
use crate::filters::Filters;
use crate::queued_event::QueuedEvent;
use crate::selection::Selection;
use crate::topics::topic_of_content;
use lanecast_transport::{Event, Message, SessionId, Stream, TopicId};
use lanecast_wire::content::{CONTENT_VERSION, ContentFrame, ContentFrameError};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use zerocopy::little_endian::U64;

/// Negotiation of the filter with each publisher.
#[derive(Debug)]
pub(crate) struct Negotiations {
    /// Publishers that serve filters.
    publishers: BTreeMap<(SessionId, TopicId), FilterPublisher>,
    /// Number of them that have not answered the request: every poll asks for it.
    unanswered: usize,
    /// Streams of publishers that serve none.
    unfiltered: usize,
    /// Sessions of the control publishers, which request the filter; answers name them.
    controls: BTreeSet<u64>,
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

impl Negotiations {
    /// Negotiations of a subscriber whose filter `local` has.
    pub(crate) const fn new(local: Filters) -> Self {
        Self {
            publishers: BTreeMap::new(),
            unanswered: 0,
            unfiltered: 0,
            controls: BTreeSet::new(),
            local: RefCell::new(LocalFilter { filters: local, found: Vec::new() }),
            malformed_frames: 0,
            malformed_messages: 0,
        }
    }

    pub(crate) fn active_streams(&self) -> usize {
        self.unfiltered + self.publishers.values().filter(|it| it.is_active()).count()
    }

    /// Whether a publisher has not answered the request.
    #[inline]
    pub(crate) const fn is_requesting(&self) -> bool {
        self.unanswered > 0
    }

    /// The sessions of the publishers that have not answered the request, by topic. All of them are
    /// joined: what they send after their answer arrives.
    pub(crate) fn requests(&self) -> BTreeMap<&str, Vec<U64>> {
        let mut requests = BTreeMap::<&str, Vec<U64>>::new();
        for it in self.publishers.values().filter(|it| it.is_requested()) {
            let Stream { topic, session, .. } = it.stream();
            requests.entry(topic).or_default().push(U64::new(session.0));
        }
        requests
    }

    /// Topics of publishers that serve filters.
    pub(crate) fn topics(&self) -> BTreeSet<&str> {
        self.publishers.values().map(|it| &*it.stream().topic).collect()
    }

    /// The filter is requested in the sessions `controls`.
    pub(crate) fn set_controls(&mut self, controls: BTreeSet<u64>) {
        self.controls = controls;
    }

    /// Ends the requests without an answer: they cannot be sent, for this `reason`.
    pub(crate) fn refuse_requests(&mut self, reason: &str, queue: &mut VecDeque<QueuedEvent>) {
        self.publishers.values_mut().for_each(|it| it.refuse(reason, queue));
        self.unanswered = 0;
    }

    pub(crate) const fn malformed_frames(&self) -> u64 {
        self.malformed_frames
    }

    pub(crate) const fn malformed_messages(&self) -> u64 {
        self.malformed_messages
    }

    pub(crate) fn streams(&self) -> usize {
        self.unfiltered + self.publishers.len()
    }

    /// Selects `event` if it is a matching message.
    #[inline]
    pub(crate) fn select<'a>(&'a self, event: Event<'a>) -> Selection<'a> {
        let Event::Message(message) = event else { return Selection::Other };
        match self.publishers.get(&key(message.stream())) {
            Some(publisher) => publisher.select(message),
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

    /// Notes an event that is [`Other`](Selection::Other), and queues the events that it means to
    /// the application.
    pub(crate) fn note(&mut self, event: Event<'_>, queue: &mut VecDeque<QueuedEvent>) {
        match event {
            Event::Joined(stream) => self.join(stream, queue),
            Event::Message(message) if !self.publishers.contains_key(&key(message.stream())) => {
                self.malformed_messages += 1;
            }
            Event::Message(message) => self.note_frame(message, queue),
            Event::Lost(gap) => match self.publishers.get_mut(&key(gap.stream)) {
                Some(publisher) => {
                    let was_requested = publisher.is_requested();
                    publisher.lose((gap.count, gap.why), queue);
                    self.unanswered += usize::from(publisher.is_requested() && !was_requested);
                }
                None => queue.extend(QueuedEvent::new(event)),
            },
            Event::Left(stream, why) => match self.publishers.remove(&key(stream)) {
                Some(mut left) => {
                    self.unanswered -= usize::from(left.is_requested());
                    left.end_loss(None, queue);
                    queue.extend(QueuedEvent::new(Event::Left(left.stream(), why)));
                }
                None => {
                    self.unfiltered -= 1;
                    queue.extend(QueuedEvent::new(event));
                }
            },
            _ => {}
        }
    }

    fn join(&mut self, stream: &Stream, queue: &mut VecDeque<QueuedEvent>) {
        let Some(topic) = topic_of_content(&stream.topic) else {
            self.unfiltered += 1;
            queue.extend(QueuedEvent::new(Event::Joined(stream)));
            queue.extend(QueuedEvent::new(Event::FilterActive(stream)));
            return;
        };
        let stream = Stream { topic: topic.to_owned(), ..stream.clone() };
        queue.extend(QueuedEvent::new(Event::Joined(&stream)));
        self.publishers.insert(key(&stream), FilterPublisher::new(stream));
        self.unanswered += 1;
    }

    /// Notes an answer of a publisher that serves filters.
    fn note_frame(&mut self, whole: Message<'_>, queue: &mut VecDeque<QueuedEvent>) {
        let Some(publisher) = self.publishers.get_mut(&key(whole.stream())) else { return };
        // Read before the check: the frame borrows the buffer, and is used only if it was intact.
        let frame = ContentFrame::read(whole.bytes());
        if !whole.is_intact() {
            return;
        }
        let was_requested = publisher.is_requested();
        match frame {
            Ok(ContentFrame::InForce { mark, session, next }) => {
                // Others are answers to other subscribers.
                if self.controls.contains(&session) {
                    publisher.activate(mark, next, queue);
                }
            }
            Ok(ContentFrame::Refused { session, reason }) => {
                if self.controls.contains(&session) {
                    publisher.refuse(reason, queue);
                }
            }
            Ok(ContentFrame::Withdrawn { mark, first, next }) => {
                publisher.withdraw(mark, (first, next), queue);
            }
            Err(ContentFrameError::Version(version)) => {
                self.malformed_frames += 1;
                let reason = format!(
                    "its filter negotiation is of version {version}, this subscriber reads \
                     version {CONTENT_VERSION}: use one version of lanecast"
                );
                publisher.refuse(&reason, queue);
            }
            Ok(ContentFrame::Wanted { .. }) | Err(ContentFrameError::Malformed) => {
                self.malformed_frames += 1;
            }
            // Messages are selected, not noted.
            Ok(ContentFrame::Message { .. }) => {}
        }
        let is_requested = publisher.is_requested();
        self.unanswered += usize::from(is_requested && !was_requested);
        self.unanswered -= usize::from(was_requested && !is_requested);
    }
}

const fn key(stream: &Stream) -> (SessionId, TopicId) {
    (stream.session, stream.topic_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ContentSettings;
    use lanecast_filter::message_type::MessageType;
    use lanecast_transport::{CloseReason, Gap, Lease, LossReason};
    use zerocopy::little_endian::U16;

    const CONTROL: u64 = 9;
    const MARK: u16 = 3;

    /// A subscriber's negotiations with one publisher, and the events that came of its frames.
    struct World {
        state: Negotiations,
        stream: Stream,
        queue: VecDeque<QueuedEvent>,
        seen: Vec<String>,
    }

    fn words(event: Event<'_>) -> String {
        match event {
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
        }
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
            let state = Negotiations::new(local);
            let mut world = Self { state, stream, queue: VecDeque::new(), seen: Vec::new() };
            world.state.set_controls([CONTROL].into());
            world.on(Event::Joined);
            world
        }

        fn on<'a>(&'a mut self, event: impl FnOnce(&'a Stream) -> Event<'a>) {
            let Self { state, stream, queue, seen } = self;
            let event = event(stream);
            match state.select(event) {
                Selection::Message(message) => seen.push(words(Event::Message(message))),
                Selection::Skipped => {}
                Selection::Other => state.note(event, queue),
            }
            seen.extend(queue.drain(..).map(|event| words(event.get())));
            let unanswered = state.publishers.values().filter(|it| it.is_requested()).count();
            assert_eq!(state.unanswered, unanswered);
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

    /// The publisher says from which message on nothing was sent with the mark. Before that one
    /// nothing is lost, however many messages matched no filter.
    #[test]
    fn a_withdrawn_mark_loses_what_was_not_sent() {
        let withdrawn = |first, next| ContentFrame::Withdrawn { mark: MARK, first, next };
        let mut world = World::new();
        world.in_force(0);
        world.message(0, MARK);
        world.frame(&withdrawn(3, 5));
        world.in_force(6);
        let wanted = ["joined t", "active", "message 0", "inactive", "lost 3..6 Skipped", "active"];
        assert_eq!(world.seen(), wanted);
        world.frame(&withdrawn(9, 9));
        world.in_force(9);
        assert_eq!(world.seen(), ["inactive", "active"], "all that matches was sent");
        world.frame(&withdrawn(9, 12));
        world.on(|stream| Event::Left(stream, CloseReason::Closed));
        assert_eq!(world.seen(), ["inactive", "lost 9..12 Skipped", "left closed"]);
    }

    /// Requests name the publishers that have not answered, and no others.
    #[test]
    fn requests_name_who_has_not_answered() {
        let mut world = World::new();
        let requests = |world: &World| {
            let requests = world.state.requests();
            requests.into_iter().map(|(topic, named)| (topic.to_owned(), named)).collect::<Vec<_>>()
        };
        assert_eq!(requests(&world), [("t".to_owned(), vec![U64::new(1)])]);
        world.stream.session = SessionId(2);
        world.on(Event::Joined);
        assert_eq!(requests(&world), [("t".to_owned(), vec![U64::new(1), U64::new(2)])]);
        world.in_force(0);
        assert_eq!(requests(&world), [("t".to_owned(), vec![U64::new(1)])]);
        world.lose(1);
        assert_eq!(requests(&world), [("t".to_owned(), vec![U64::new(1), U64::new(2)])]);
        world.on(|stream| Event::Left(stream, CloseReason::Evicted));
        world.stream.session = SessionId(1);
        world.frame(&ContentFrame::Refused { session: CONTROL, reason: "no" });
        assert!(requests(&world).is_empty() && !world.state.is_requesting());
    }

    /// Answers to other subscribers' requests change nothing.
    #[test]
    fn answers_to_others_are_ignored() {
        let mut world = World::new();
        let others = CONTROL + 1;
        world.frame(&ContentFrame::InForce { mark: MARK, session: others, next: 0 });
        world.frame(&ContentFrame::Refused { session: others, reason: "no" });
        world.frame(&ContentFrame::Withdrawn { mark: MARK, first: 0, next: 9 });
        world.message(9, MARK);
        assert_eq!(world.seen(), ["joined t"]);
        world.in_force(10);
        world.frame(&ContentFrame::Withdrawn { mark: MARK + 1, first: 0, next: 9 });
        assert_eq!(world.seen(), ["active"]);
        assert_eq!(world.state.malformed_frames(), 0);
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
        let last = ContentFrame::Withdrawn { mark: MARK, first: u64::MAX, next: 0 };
        world.frame(&last);
        world.in_force(0);
        assert_eq!(world.seen(), ["inactive", "active"]);
        world.lose(u64::MAX);
        world.on(|stream| Event::Left(stream, CloseReason::Died));
        assert_eq!(world.seen(), ["inactive", "left died"], "no number is left to lose");
    }
}
