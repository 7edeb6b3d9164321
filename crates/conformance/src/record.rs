//! Recorded events of a subscriber.

use lanecast_transport::{
    BackPressureReason, ClaimError, CloseReason, Event, LossReason, Publish, SessionId, Stream,
    Subscribe,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Longest wait of a case. Threads that spin for each other need a turn of the scheduler for each
/// message where other programs have the CPUs.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// One event, kept beyond its handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// `Joined`.
    Joined(Stream),
    /// A message.
    Message {
        /// The session.
        session: SessionId,
        /// The topic's name.
        topic: String,
        /// The message's number.
        number: u64,
        /// The payload.
        bytes: Vec<u8>,
    },
    /// `Lost`.
    Lost {
        /// The stream.
        stream: Stream,
        /// Number of the first message.
        first: u64,
        /// Number of messages.
        count: u64,
        /// The reason.
        why: LossReason,
    },
    /// `Left`.
    Left(Stream, CloseReason),
}

/// Recorded events of a subscriber, in order.
#[derive(Clone, Debug, Default)]
pub struct Record {
    entries: Vec<Entry>,
    /// Places of the messages among the entries: tests ask for their number after each poll.
    messages: Vec<usize>,
}

impl Record {
    /// An empty record.
    pub fn new() -> Self {
        Self::default()
    }

    /// All events, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Records an event.
    pub fn note(&mut self, event: Event<'_>) {
        if matches!(event, Event::Message(_)) {
            self.messages.push(self.entries.len());
        }
        self.entries.push(match event {
            Event::Joined(stream) => Entry::Joined(stream.clone()),
            Event::Message(message) => Entry::Message {
                session: message.stream().session,
                topic: message.stream().topic.clone(),
                number: message.number(),
                bytes: message.bytes().to_vec(),
            },
            Event::Lost(gap) => {
                let (first, count, why) = (gap.first, gap.count, gap.why);
                Entry::Lost { stream: gap.stream.clone(), first, count, why }
            }
            Event::Left(stream, why) => Entry::Left(stream.clone(), why),
            other => panic!("an event that the suite does not know: {other:?}"),
        });
    }

    /// Polls and waits until `done`.
    pub fn listen(&mut self, subscriber: &mut impl Subscribe, done: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !done(self) {
            assert!(start.elapsed() < PATIENCE, "waited in vain; so far {}", self.summary());
            let work = subscriber.poll(64, |event| self.note(event));
            subscriber.wait(work);
        }
    }

    /// Polls until there are no more events.
    pub fn exhaust(&mut self, subscriber: &mut impl Subscribe) {
        while subscriber.poll(usize::MAX, |event| self.note(event)) > 0 {}
    }

    /// Number of messages.
    pub fn message_count(&self) -> usize {
        self.messages.len()
    }

    /// Bytes of the message of this index.
    ///
    /// # Panics
    ///
    /// If there are fewer messages.
    pub fn message(&self, index: usize) -> &[u8] {
        match &self.entries[self.messages[index]] {
            Entry::Message { bytes, .. } => bytes,
            other => unreachable!("{other:?} is among the messages"),
        }
    }

    /// The messages' bytes.
    pub fn messages(&self) -> Vec<&[u8]> {
        (0..self.message_count()).map(|index| self.message(index)).collect()
    }

    /// The messages of one session.
    pub fn of_session(&self, wanted: SessionId) -> Vec<&[u8]> {
        let bytes = self.entries.iter().filter_map(|entry| match entry {
            Entry::Message { session, bytes, .. } if *session == wanted => Some(bytes.as_slice()),
            _ => None,
        });
        bytes.collect()
    }

    /// The messages of one topic.
    pub(crate) fn of_topic(&self, wanted: &str) -> Vec<&[u8]> {
        let bytes = self.entries.iter().filter_map(|entry| match entry {
            Entry::Message { topic, bytes, .. } if topic == wanted => Some(bytes.as_slice()),
            _ => None,
        });
        bytes.collect()
    }

    /// The streams that joined.
    pub fn joined(&self) -> Vec<&Stream> {
        let streams = self.entries.iter().filter_map(|entry| match entry {
            Entry::Joined(stream) => Some(stream),
            _ => None,
        });
        streams.collect()
    }

    /// The streams that left, and why.
    pub fn left(&self) -> Vec<(&Stream, CloseReason)> {
        let streams = self.entries.iter().filter_map(|entry| match entry {
            Entry::Left(stream, why) => Some((stream, *why)),
            _ => None,
        });
        streams.collect()
    }

    /// Panics unless every stream joined before its messages, once, and left after, at most
    /// once, its messages have consecutive numbers, and nothing was lost.
    pub fn check_lives(&self) {
        let mut alive: Vec<(SessionId, &str)> = Vec::new();
        let mut ever: Vec<(SessionId, &str)> = Vec::new();
        let mut next: BTreeMap<(SessionId, &str), u64> = BTreeMap::new();
        for entry in &self.entries {
            match entry {
                Entry::Joined(stream) => {
                    let key = (stream.session, stream.topic.as_str());
                    assert!(!ever.contains(&key), "{stream} joined twice");
                    ever.push(key);
                    alive.push(key);
                }
                Entry::Message { session, topic, number, .. } => {
                    let key = (*session, topic.as_str());
                    assert!(alive.contains(&key), "a message of {topic} outside its life");
                    let due = next.insert(key, number + 1).unwrap_or(*number);
                    assert_eq!(*number, due, "number of a message of {topic}");
                }
                Entry::Lost { stream, first, count, why } => panic!(
                    "{stream} lost messages: {count:?} from {first} on, {why:?}; {}",
                    self.summary()
                ),
                Entry::Left(stream, _) => {
                    let key = (stream.session, stream.topic.as_str());
                    let place = alive.iter().position(|other| *other == key);
                    alive.remove(place.unwrap_or_else(|| panic!("{stream} left without joining")));
                }
            }
        }
    }

    /// Whether messages of all `topics` are among its last thousand events.
    pub(crate) fn has_recent(&self, topics: &[&str]) -> bool {
        let recent = &self.entries[self.entries.len().saturating_sub(1_000)..];
        let is_there = |wanted: &&str| {
            let is_one =
                |entry: &Entry| matches!(entry, Entry::Message { topic, .. } if topic == wanted);
            recent.iter().any(is_one)
        };
        topics.iter().all(is_there)
    }

    /// The number after the latest message or gap of `wanted`, if there is one.
    pub(crate) fn next_of(&self, wanted: &str) -> Option<u64> {
        self.entries.iter().rev().find_map(|entry| match entry {
            Entry::Message { topic, number, .. } if topic == wanted => Some(number + 1),
            Entry::Lost { stream, first, count, .. } if stream.topic == wanted => {
                Some(first + count)
            }
            _ => None,
        })
    }

    /// Numbers of its events, for failures.
    pub(crate) fn summary(&self) -> String {
        let (joined, left) = (self.joined().len(), self.left().len());
        format!("{joined} joined, {} messages, {left} left", self.message_count())
    }
}

/// Waits until `publisher` has `count` subscribers.
pub(crate) fn gather(publisher: &mut impl Publish, count: usize) {
    assert!(publisher.wait_for_subscribers(count, PATIENCE), "{count} subscribers never came");
}

/// Offers messages of `length` bytes, numbered from `first`, until there is no room; returns
/// how many there was room for.
pub(crate) fn fill(publisher: &mut impl Publish, first: u64, length: usize) -> u64 {
    for count in 0.. {
        let body = crate::Body::of_length(first + count, length).bytes();
        match publisher.try_send(&body) {
            Ok(()) => {}
            Err(ClaimError::BackPressured(BackPressureReason::WindowFull)) => return count,
            Err(other) => panic!("no back-pressure: {other}"),
        }
    }
    unreachable!("a window is bounded")
}

/// Waits for `done`, yielding in between.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "timed out waiting for: {what}");
        std::thread::yield_now();
    }
}
