//! Contracts 4 and 5: publishers learn who came, who went and why, and who has read everything.

use crate::record::{fill, gather, until};
use crate::{PATIENCE, Record};
use lanecast_transport::{
    DepartureReason, IncompleteReason, Publish, PublisherEvent, Subscribe, SubscriberId, Transport,
};
use std::thread;
use std::time::Duration;

const A_MOMENT: Duration = Duration::from_millis(20);

/// A publisher's event, kept beyond its handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Note {
    Joined(SubscriberId),
    Left(SubscriberId, DepartureReason),
    Writable,
}

/// Polls once and adds the events to `notes`.
fn poll(publisher: &mut impl Publish, notes: &mut Vec<Note>) {
    let before = notes.len();
    let events = publisher.poll_events(|event| {
        notes.push(match event {
            PublisherEvent::SubscriberJoined(info) => {
                assert!(!info.address.is_empty(), "an address for people");
                Note::Joined(info.id)
            }
            PublisherEvent::SubscriberLeft(info, reason) => Note::Left(info.id, reason),
            PublisherEvent::Writable => Note::Writable,
            other => panic!("an event that the suite does not know: {other:?}"),
        });
    });
    assert_eq!(events, notes.len() - before, "each event is counted");
}

/// Polls until there are `count` events.
fn listen(publisher: &mut impl Publish, notes: &mut Vec<Note>, count: usize) {
    until("the publisher's events", || {
        poll(publisher, notes);
        notes.len() >= count
    });
}

/// Each subscriber joins once and leaves once, also if it came and went between two polls.
pub fn publishers_learn_who_came_and_went<C: Transport>(transport: &C) {
    let mut publisher = transport.publisher("a").expect("a publisher");
    let mut notes = Vec::new();
    poll(&mut publisher, &mut notes);
    assert_eq!(notes, [], "there is none yet");
    let first = transport.subscriber(&["a"]).expect("a subscriber");
    gather(&mut publisher, 1);
    listen(&mut publisher, &mut notes, 1);
    let &[Note::Joined(one)] = notes.as_slice() else { panic!("one joined: {notes:?}") };
    drop(first);
    listen(&mut publisher, &mut notes, 2);
    assert_eq!(notes[1], Note::Left(one, DepartureReason::Left));
    // Unseen by any poll while it is there.
    let second = transport.subscriber(&["a"]).expect("a subscriber");
    gather(&mut publisher, 1);
    drop(second);
    until("its departure", || publisher.subscribers() == 0);
    listen(&mut publisher, &mut notes, 4);
    let Note::Joined(two) = notes[2] else { panic!("another joined: {notes:?}") };
    assert_eq!(notes[3], Note::Left(two, DepartureReason::Left));
    assert_ne!(one, two, "an id is never used again");
    (0..20).for_each(|_| poll(&mut publisher, &mut notes));
    assert_eq!(notes.len(), 4, "and then nothing more: {notes:?}");
}

/// After a refused claim there is one event as soon as there is room, and none before.
pub fn room_again_is_an_event<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    let (mut record, mut notes, mut sent) = (Record::new(), Vec::new(), 0);
    listen(&mut publisher, &mut notes, 1);
    for round in 0..3 {
        sent += fill(&mut publisher, sent, 1_000);
        (0..20).for_each(|_| poll(&mut publisher, &mut notes));
        assert_eq!(notes.len(), 1 + round, "nothing has been read yet: {notes:?}");
        record.listen(&mut subscriber, |record| record.message_count() as u64 >= sent);
        until("room", || {
            // A subscriber reports what it has read as it polls and waits.
            let work = subscriber.poll(64, |event| record.note(event));
            subscriber.wait(work);
            poll(&mut publisher, &mut notes);
            notes.len() > 1 + round
        });
        (0..20).for_each(|_| poll(&mut publisher, &mut notes));
        assert_eq!(notes[1 + round..], [Note::Writable], "once per refusal");
        publisher.try_send(&[0; 1_000]).expect("there is room");
        sent += 1;
        record.listen(&mut subscriber, |record| record.message_count() as u64 >= sent);
        // A subscriber tells in steps how far it has read: the next step would make room, too.
        until("all is known to be read", || {
            let work = subscriber.poll(64, |event| record.note(event));
            subscriber.wait(work);
            publisher.drain(A_MOMENT).is_complete()
        });
    }
}

/// The report of a drain and of a close names each subscriber that has not read everything.
pub fn a_report_names_who_has_not_read_everything<C: Transport>(transport: &C) {
    let mut publisher = transport.publisher("a").expect("a publisher");
    let mut notes = Vec::new();
    let mut quick = transport.subscriber(&["a"]).expect("a subscriber");
    gather(&mut publisher, 1);
    listen(&mut publisher, &mut notes, 1);
    let mut slow = transport.subscriber(&["a"]).expect("a subscriber");
    gather(&mut publisher, 2);
    listen(&mut publisher, &mut notes, 2);
    let &[Note::Joined(first), Note::Joined(second)] = notes.as_slice() else {
        panic!("two joined: {notes:?}")
    };
    for number in 0..10u64 {
        publisher.send(&number.to_le_bytes()).expect("room");
    }
    let mut record = Record::new();
    record.listen(&mut quick, |record| record.message_count() == 10);
    until("the report of what was read", || {
        let work = quick.poll(64, |event| record.note(event));
        quick.wait(work);
        let report = publisher.drain(A_MOMENT);
        let all = report.incomplete();
        assert!(report.timed_out() && !report.is_complete(), "{report}");
        let mut behind = all.iter().map(|one| (one.subscriber.id, one.reason));
        for (_, reason) in behind.clone() {
            let IncompleteReason::Behind { bytes, messages } = reason else { panic!("{reason}") };
            assert!(bytes >= 80 && messages.is_none_or(|count| count == 10), "{report}");
        }
        assert!(behind.any(|(id, _)| id == second), "{report}");
        report.complete() == 1 && all.iter().all(|one| one.subscriber.id != first)
    });
    let mut late = Record::new();
    let closer = thread::spawn(move || publisher.close(PATIENCE));
    late.listen(&mut slow, |record| !record.left().is_empty());
    record.listen(&mut quick, |record| !record.left().is_empty());
    let report = closer.join().expect("the closer");
    assert!(report.is_complete() && !report.timed_out(), "{report}");
    assert_eq!((report.complete(), report.incomplete().len()), (2, 0), "{report}");
    assert_eq!(late.message_count(), 10);
}

/// A subscriber that left with messages unread is named, and does not make a report incomplete.
pub fn a_report_tells_who_left_early<C: Transport>(transport: &C) {
    for reads in [true, false] {
        let mut publisher = transport.publisher("a").expect("a publisher");
        let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
        gather(&mut publisher, 1);
        (0..10).for_each(|_| publisher.send(b"to be read").expect("room"));
        let mut record = Record::new();
        if reads {
            record.listen(&mut subscriber, |record| record.message_count() == 10);
        }
        drop(subscriber);
        until("its departure", || publisher.subscribers() == 0);
        let report = publisher.close(PATIENCE);
        assert!(report.is_complete(), "{report}");
        let early = report.incomplete().iter().filter(|one| one.has_left()).count();
        let expected = if reads { (1, 0, 0) } else { (0, 1, 1) };
        assert_eq!((report.complete(), early, report.incomplete().len()), expected, "{report}");
    }
}
