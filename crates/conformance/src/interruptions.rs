//! Contract 1 across interruptions: a path that breaks and comes back costs nothing while the
//! publisher still holds what is missing, and beyond that an exact gap.

use crate::record::{fill, gather, until};
use crate::{Body, Entry, Record};
use lanecast_transport::{
    BackPressureReason, ClaimError, CloseReason, Completion, Event, IncompleteReason, LossReason,
    Publish, Run, Subscribe, TopicId, Transport,
};
use std::collections::BTreeMap;

/// Topics of these cases. The second one has a third of the messages, so that the numbers of the
/// two differ.
pub const TOPICS: [&str; 2] = ["a", "b"];

/// Length of a message.
const LENGTH: usize = 200;

/// The path between the publisher and the subscriber of a case, which the test can cut.
pub trait Path {
    /// Cuts the path: connections break, and frames on their way are lost.
    fn cut(&self);
    /// Lets frames and connections pass again, once the cut has lost some.
    fn restore(&self);
}

/// A publisher of both topics, and the number of messages on each.
struct Source<P> {
    publisher: P,
    topics: [TopicId; TOPICS.len()],
    next: [u64; TOPICS.len()],
}

impl<P: Publish> Source<P> {
    fn new(mut publisher: P) -> Self {
        let topics = TOPICS.map(|name| publisher.add_topic(name).expect("a topic"));
        Self { publisher, topics, next: [0; TOPICS.len()] }
    }

    /// Sends a message, if there is room.
    fn try_send(&mut self) -> Result<(), ClaimError> {
        let at = usize::from(self.next.iter().sum::<u64>() % 4 == 3);
        let body = Body::of_length(self.next[at], LENGTH).bytes();
        self.publisher.try_send_on(self.topics[at], &body)?;
        self.next[at] += 1;
        Ok(())
    }

    /// Sends a message, waiting for room.
    fn send(&mut self) {
        until("room", || match self.try_send() {
            Ok(()) => true,
            Err(ClaimError::BackPressured(_)) => false,
            Err(other) => panic!("a live publisher: {other}"),
        });
    }

    /// Sends `count` messages, or as many as there is room for.
    fn send_if_room(&mut self, count: usize) {
        for _ in 0..count {
            match self.try_send() {
                Ok(()) => {}
                Err(ClaimError::BackPressured(BackPressureReason::WindowFull)) => return,
                Err(other) => panic!("no back-pressure: {other}"),
            }
        }
    }

    /// Sends `count` messages, and then one on each topic.
    fn send_some(&mut self, count: usize) {
        (0..count).for_each(|_| self.send());
        let next = self.next;
        // Four messages are three of the first topic and one of the second.
        (0..4).for_each(|_| self.send());
        assert!(next.iter().zip(&self.next).all(|(before, now)| before < now));
    }

    /// Closes the publisher, while the subscriber reads on to the end of both streams.
    fn close(self, subscriber: &mut impl Subscribe, record: &mut Record) -> Completion {
        let closer = std::thread::spawn(move || self.publisher.close(crate::PATIENCE));
        listen(record, subscriber, |record| record.left().len() == TOPICS.len());
        closer.join().expect("the closer")
    }

    /// Whether `record` has the last message of each topic.
    fn has_come(&self, record: &Record) -> bool {
        let mut numbers = TOPICS.iter().zip(self.next);
        numbers.all(|(topic, next)| record.next_of(topic) == Some(next))
    }
}

/// Polls and takes by turns until `done`.
fn listen(record: &mut Record, subscriber: &mut impl Subscribe, done: impl Fn(&Record) -> bool) {
    let mut round = 0;
    until("the events", || {
        round += 1;
        let work = if round % 2 == 0 {
            subscriber.poll(8, |event| record.note(event))
        } else {
            let run = subscriber.take(8);
            let events: Vec<Event<'_>> = run.iter().collect();
            events.iter().for_each(|event| record.note(*event));
            events.len()
        };
        subscriber.wait(work);
        done(record)
    });
}

/// Messages that were lost of each topic, as gaps tell it. Panics unless messages and gaps of each
/// topic follow one another without a hole and without an overlap, each message whole, from 0 to
/// `next`.
fn lost_messages(record: &Record, next: [u64; TOPICS.len()]) -> [u64; TOPICS.len()] {
    let mut lost = BTreeMap::new();
    let mut due: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in record.entries() {
        match entry {
            Entry::Message { topic, number, bytes, .. } => {
                let due = due.entry(topic).or_default();
                assert_eq!(number, due, "number of a message of {topic}");
                Body::of_length(*number, LENGTH).check(bytes);
                *due += 1;
            }
            Entry::Lost { stream, first, count, .. } => {
                let due = due.entry(&stream.topic).or_default();
                assert_eq!(first, due, "first message of a gap of {stream}");
                assert!(*count > 0, "a gap has messages");
                *due += count;
                *lost.entry(stream.topic.as_str()).or_default() += count;
            }
            Entry::Joined(_) | Entry::Left(..) => {}
        }
    }
    assert_eq!(TOPICS.map(|topic| due.get(topic).copied().unwrap_or(0)), next, "all of them");
    TOPICS.map(|topic| lost.get(topic).copied().unwrap_or(0))
}

/// A path that breaks and comes back, five times, while the publisher holds what is missing:
/// nothing is lost, nothing repeated, and the streams go on.
pub fn a_path_that_comes_back_loses_nothing<P: Publish, S: Subscribe>(
    publisher: P,
    mut subscriber: S,
    path: &impl Path,
) {
    let (mut source, mut record) = (Source::new(publisher), Record::new());
    gather(&mut source.publisher, 1);
    listen(&mut record, &mut subscriber, |record| record.joined().len() == TOPICS.len());
    for _ in 0..5 {
        source.send_some(60);
        // Some are read before the cut, and the others are under way.
        let read = record.message_count() + 30;
        listen(&mut record, &mut subscriber, |record| record.message_count() >= read);
        path.cut();
        source.send_if_room(60);
        path.restore();
        listen(&mut record, &mut subscriber, |record| source.has_come(record));
    }
    let next = source.next;
    let report = source.close(&mut subscriber, &mut record);
    assert!(report.is_complete() && report.complete() == 1, "{report}");
    record.check_lives();
    assert_eq!(lost_messages(&record, next), [0, 0]);
    assert!(record.left().iter().all(|(_, reason)| *reason == CloseReason::Closed));
}

/// A path that comes back too late: the publisher, which waits for no subscriber, has sent more
/// than its window holds. The gap of each topic is exact, and the streams go on behind it.
pub fn a_path_that_comes_back_too_late_costs_exact_gaps<P: Publish, S: Subscribe>(
    publisher: P,
    mut subscriber: S,
    (path, window_bytes): (&impl Path, usize),
) {
    let (mut source, mut record) = (Source::new(publisher), Record::new());
    gather(&mut source.publisher, 1);
    listen(&mut record, &mut subscriber, |record| record.joined().len() == TOPICS.len());
    for windows in 2..5 {
        source.send_some(10);
        listen(&mut record, &mut subscriber, |record| source.has_come(record));
        let lost_before = lost_messages(&record, source.next);
        path.cut();
        let sent = windows * window_bytes / LENGTH;
        source.send_some(sent);
        path.restore();
        // The ends of the gaps, and the messages after them.
        source.send_some(10);
        listen(&mut record, &mut subscriber, |record| source.has_come(record));
        let lost = lost_messages(&record, source.next);
        let count = lost.iter().sum::<u64>() - lost_before.iter().sum::<u64>();
        let kept_most = window_bytes / LENGTH;
        assert!(count as usize >= sent - kept_most, "{count} of {sent} lost in {windows} windows");
        assert!(lost.iter().zip(lost_before).all(|(now, before)| *now > before), "{lost:?}");
    }
    assert!(record.left().is_empty() && record.joined().len() == TOPICS.len());
    let report = source.close(&mut subscriber, &mut record);
    let all = report.incomplete();
    assert!(all.iter().all(|it| it.reason == IncompleteReason::LostMessages), "{report}");
    assert_eq!((report.complete(), all.len()), (0, 1), "{report}");
}

/// A subscriber that stalls longer than the publisher's policy allows is evicted: one gap per
/// topic, from its next message to the last one published, and then the end. Only for transports
/// with such a policy.
pub fn an_evicted_subscriber_knows_what_it_lost<C: Transport>(transport: &C) {
    for by_runs in [false, true] {
        let mut subscriber = transport.subscriber(&TOPICS).expect("a subscriber");
        let mut source = Source::new(transport.publisher(TOPICS[0]).expect("a publisher"));
        gather(&mut source.publisher, 1);
        source.send_some(10);
        let mut record = Record::new();
        listen(&mut record, &mut subscriber, |record| source.has_come(record));
        let read = source.next;
        // Fills the window, so that the next message needs the room of the one that stalls.
        let filled = fill(&mut source.publisher, source.next[0], LENGTH);
        source.next[0] += filled;
        source.send_some(40);
        assert_eq!(source.publisher.subscribers(), 0, "it was evicted");
        if by_runs {
            listen(&mut record, &mut subscriber, |record| record.left().len() == TOPICS.len());
        } else {
            record.listen(&mut subscriber, |record| record.left().len() == TOPICS.len());
        }
        let lost = lost_messages(&record, source.next);
        assert_eq!(lost, [0, 1].map(|at| source.next[at] - read[at]), "all that it had not read");
        for entry in record.entries() {
            match entry {
                Entry::Lost { why, .. } => assert_eq!(*why, LossReason::Evicted),
                Entry::Left(_, reason) => assert_eq!(*reason, CloseReason::Evicted),
                Entry::Joined(_) | Entry::Message { .. } => {}
            }
        }
        let gaps = record.entries().iter().filter(|entry| matches!(entry, Entry::Lost { .. }));
        assert_eq!(gaps.count(), TOPICS.len(), "one gap for each topic");
        assert_eq!(subscriber.streams(), 0);
    }
}
