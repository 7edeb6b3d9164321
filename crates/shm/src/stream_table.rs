//! The streams of a session as one subscriber sees them: topics that join, and the session's end.
//!
//! Owned by an image. Topics and the end are noted first and reported later, by a poll's handler or
//! by a run, so that a handler that panics and a run that is dropped lose no event.

use crate::awaited_room::AwaitedRoom;
use crate::memory::Memory;
use crate::numbered_stream::NumberedStream;
use crate::ring_reader::{Next, RingReader};
use crate::segment::Segment;
use lanecast_base::Position;
use lanecast_base::sync::Ordering;
use lanecast_transport::{
    AdmittedTopics, CloseReason, Event, Gap, LossReason, SessionId, Stream, TopicId,
};
use std::sync::Arc;

/// Streams by topic number, and how far their lives have been reported.
#[derive(Debug)]
pub(crate) struct StreamTable {
    /// `None` for unwanted topics.
    streams: Vec<Option<NumberedStream>>,
    /// Topic numbers of the streams, in the order of their joined events.
    order: Vec<u32>,
    /// Numbers and names of topics that a pattern matches, and that found no room so far.
    refused: Vec<(u32, String)>,
    /// There was room for a refused topic, but the number of its next message was not known.
    awaits_numbers: bool,
    /// Up to the last event that was reported.
    progress: LifeProgress,
    end: Option<End>,
    session: u64,
    pid: u32,
    wanted: AdmittedTopics,
    /// Room for the refused topics.
    room: Arc<AwaitedRoom>,
    /// Source in events: `shm:<session>` or `thread:<session>`.
    source: String,
}

/// End of the session.
#[derive(Debug)]
struct End {
    reason: CloseReason,
    lost: Option<LossReason>,
}

/// Progress over the events of the streams' lives: each stream's joined event, then, at the end of
/// the session, each stream's loss if there is one, then each stream's left event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LifeProgress {
    stage: Stage,
    /// Place of the next stream in the order of joined events.
    index: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Joined,
    Lost,
    Left,
}

impl StreamTable {
    pub(crate) fn new(
        session: u64,
        pid: u32,
        (wanted, room): (AdmittedTopics, Arc<AwaitedRoom>),
        source: String,
    ) -> Self {
        let progress = LifeProgress { stage: Stage::Joined, index: 0 };
        Self {
            streams: Vec::new(),
            order: Vec::new(),
            refused: Vec::new(),
            awaits_numbers: false,
            progress,
            end: None,
            session,
            pid,
            wanted,
            room,
            source,
        }
    }

    pub(crate) const fn session(&self) -> u64 {
        self.session
    }

    /// Number of known topics.
    #[inline(always)]
    pub(crate) const fn len(&self) -> usize {
        self.streams.len()
    }

    /// The stream of a known topic; `Some(None)` if the topic is unwanted.
    #[inline(always)]
    pub(crate) fn get(&self, topic: u32) -> Option<Option<&NumberedStream>> {
        self.streams.get(topic as usize).map(Option::as_ref)
    }

    /// As [`get`](Self::get), to pass messages.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, topic: u32) -> Option<Option<&mut NumberedStream>> {
        self.streams.get_mut(topic as usize).map(Option::as_mut)
    }

    /// Passes the messages of `topic` before number `next`.
    #[inline]
    pub(crate) fn set_next(&mut self, topic: u32, next: u64) {
        if let Some(Some(stream)) = self.get_mut(topic) {
            stream.set_next(next);
        }
    }

    /// Passes the messages of several topics from `reader`'s next one to `end`.
    #[cold]
    pub(crate) fn pass_messages(&mut self, reader: &RingReader<Segment>, end: Position) {
        let mut walk = reader.walk();
        while end.is_past(walk.at())
            && let Next::Frame(frame) = reader.peek_at(&walk)
        {
            if let Some(Some(stream)) = self.get_mut(frame.topic.topic())
                && stream.pass(frame.topic).is_none()
            {
                // The stream's next message shows the contradiction again.
                return;
            }
            reader.step(&mut walk, frame.length);
        }
    }

    /// Number of joined streams.
    pub(crate) fn joined(&self) -> usize {
        if self.has_ended() { 0 } else { self.streams.iter().flatten().count() }
    }

    /// Notes the topics added since the last call.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_topics(&mut self, reader: &RingReader<Segment>) {
        let segment = reader.memory();
        // PAIRS(topics): acquire here, release in `Publisher::add_topic`.
        let count = segment.ring().topics.load(Ordering::Acquire);
        let count = count.min(segment.limits().topics_max);
        for number in self.streams.len() as u32..count {
            let name = segment.read_topic(number);
            let selected = name.filter(|name| self.wanted.selection().selects(name));
            self.streams.push(None);
            match selected {
                Some(topic) if self.wanted.admit(&topic) => {
                    self.add(number, &topic, reader.first_number_max(number));
                }
                Some(topic) => {
                    self.refused.push((number, topic));
                    self.room.request();
                }
                None => {}
            }
        }
    }

    /// Admits topics that found no room before, from the reader's next message on. The others wait
    /// on: for room, or, where there is some, until the numbers of their next messages are known.
    ///
    /// The latter do not count as waiting for room. There is room, so that the subscriber would
    /// never sleep, while the writer, which has committed a message and not counted it, may stand
    /// still: it wakes the subscriber when it goes on.
    #[cold]
    pub(crate) fn admit_refused(&mut self, reader: &RingReader<Segment>) {
        self.awaits_numbers = false;
        if self.end.is_some() {
            return;
        }
        let mut awaits_room = false;
        for (number, topic) in core::mem::take(&mut self.refused) {
            let has_room = self.wanted.selection().has_room();
            let next = if has_room { reader.next_number_max(number) } else { None };
            match next {
                Some(next) if self.wanted.admit(&topic) => self.add(number, &topic, next),
                None if has_room => {
                    self.awaits_numbers = true;
                    self.refused.push((number, topic));
                }
                _ => {
                    awaits_room = true;
                    self.refused.push((number, topic));
                }
            }
        }
        if awaits_room {
            self.room.request();
        }
    }

    /// Whether topics that found room only wait for numbers, which are known now.
    #[inline]
    pub(crate) fn may_admit(&self, reader: &RingReader<Segment>) -> bool {
        self.awaits_numbers && reader.knows_numbers()
    }

    /// Adds the stream of a known topic, whose next message has at most the number `next`.
    fn add(&mut self, number: u32, topic: &str, next: u64) {
        let stream = Stream {
            session: SessionId(self.session),
            topic: Stream::visible_topic(topic).to_owned(),
            topic_id: TopicId(number),
            pid: self.pid,
            source: self.source.clone(),
        };
        self.streams[number as usize] = Some(NumberedStream::new(stream, next));
        self.order.push(number);
    }

    /// Notes the end of the session; if it loses messages, those published by now.
    pub(crate) fn note_end(
        &mut self,
        reader: &RingReader<Segment>,
        reason: CloseReason,
        lost: Option<LossReason>,
    ) {
        if lost.is_some() {
            for (topic, stream) in self.streams.iter_mut().enumerate() {
                let Some(stream) = stream else { continue };
                stream.lost = reader.count(topic as u32).saturating_sub(stream.next());
            }
        }
        self.end = Some(End { reason, lost });
    }

    /// Whether topics or the session's end are still to be reported.
    #[inline]
    pub(crate) const fn has_events(&self) -> bool {
        self.progress.index < self.order.len() || self.end.is_some()
    }

    /// Whether the session's end is known.
    #[inline]
    pub(crate) const fn is_ending(&self) -> bool {
        self.end.is_some()
    }

    /// Whether the session has ended and every stream's end is reported.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.progress == LifeProgress { stage: Stage::Left, index: self.order.len() }
    }

    /// Whether the session has ended by eviction.
    pub(crate) fn was_evicted(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.reason == CloseReason::Evicted)
    }

    /// Reports all noted events to `handler`; returns their number. Resumes after a panic of the
    /// handler.
    #[cold]
    #[inline(never)]
    pub(crate) fn report<F: FnMut(Event<'_>)>(&mut self, handler: &mut F) -> usize {
        let Self { streams, order, end, progress, .. } = self;
        let mut events = 0;
        // The progress first: a handler that panics has got the event.
        while let Some(event) = next_event((streams, order), end.as_ref(), progress) {
            handler(event);
            events += 1;
        }
        events
    }

    /// Up to the last event that was reported.
    #[inline]
    pub(crate) const fn progress(&self) -> LifeProgress {
        self.progress
    }

    /// The event after `progress`.
    pub(crate) fn event_at(&self, progress: &mut LifeProgress) -> Option<Event<'_>> {
        next_event((&self.streams, &self.order), self.end.as_ref(), progress)
    }

    /// Passes the events before `progress`, which have been reported; returns whether there are
    /// more.
    #[cold]
    pub(crate) fn pass_to(&mut self, progress: LifeProgress) -> bool {
        self.progress = progress;
        let mut rest = progress;
        let has_more = self.event_at(&mut rest).is_some();
        if !has_more {
            // Only losses of streams without any are left.
            self.progress = rest;
        }
        has_more
    }
}

/// The event of `streams`, in their order, after `progress`, which moves past it, or to the end if
/// there is none.
fn next_event<'a>(
    (streams, order): (&'a [Option<NumberedStream>], &[u32]),
    end: Option<&End>,
    progress: &mut LifeProgress,
) -> Option<Event<'a>> {
    loop {
        if let Some(number) = order.get(progress.index) {
            progress.index += 1;
            let Some(Some(numbered)) = streams.get(*number as usize) else { continue };
            let (stream, first, count) = (&numbered.stream, numbered.next(), numbered.lost);
            return match (progress.stage, end) {
                (Stage::Joined, _) => Some(Event::Joined(stream)),
                // Nothing came after the stream's last message: the loss is of other streams.
                (Stage::Lost, _) if count == 0 => continue,
                (Stage::Lost, Some(&End { lost: Some(why), .. })) => {
                    Some(Event::Lost(Gap { stream, first, count, why }))
                }
                (Stage::Left, Some(end)) => Some(Event::Left(stream, end.reason)),
                _ => None,
            };
        }
        let stage = match (progress.stage, end?) {
            (Stage::Joined, End { lost: Some(_), .. }) => Stage::Lost,
            (Stage::Joined | Stage::Lost, _) => Stage::Left,
            (Stage::Left, _) => return None,
        };
        *progress = LifeProgress { stage, index: 0 };
    }
}
