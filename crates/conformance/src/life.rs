//! Contract 2: exactly one `Joined` and one `Left` per stream and subscriber.

use crate::record::{fill, gather, until};
use crate::{Entry, Record};
use lanecast_base::sync::{AtomicBool, Ordering};
use lanecast_transport::{CloseReason, Event, Publish, Subscribe, Transport};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Joined, messages, left, and then nothing more.
pub fn streams_join_and_leave_exactly_once<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    let mut record = Record::new();
    record.listen(&mut subscriber, |record| !record.joined().is_empty());
    assert_eq!(subscriber.streams(), 1);
    for number in 0..10u64 {
        publisher.send(&number.to_le_bytes()).expect("room");
        record.exhaust(&mut subscriber);
    }
    let session = publisher.session();
    assert!(!publisher.source().is_empty());
    drop(publisher.close(Duration::ZERO));
    record.listen(&mut subscriber, |record| !record.left().is_empty());
    for _ in 0..20 {
        let work = subscriber.poll(64, |event| record.note(event));
        subscriber.wait(work);
    }
    record.check_lives();
    let Entry::Joined(stream) = &record.entries()[0] else { panic!("it starts with Joined") };
    assert_eq!((stream.session, stream.topic.as_str()), (session, "a"));
    assert_eq!(stream.pid, std::process::id());
    assert_eq!(record.left(), [(stream, CloseReason::Closed)]);
    assert_eq!(record.entries().len(), 12);
    assert_eq!(subscriber.streams(), 0);
}

/// Messages sent before the end are read before the end, however late.
pub fn pending_messages_come_before_left<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    let sent = fill(&mut publisher, 0, 64);
    drop(publisher.close(Duration::ZERO));
    let mut record = Record::new();
    record.listen(&mut subscriber, |record| !record.left().is_empty());
    record.check_lives();
    assert_eq!(record.message_count() as u64, sent);
    assert!(matches!(record.entries().last(), Some(Entry::Left(_, CloseReason::Closed))));
}

/// Publisher first or subscriber first: they find each other.
pub fn any_order_of_starting_will_do<C: Transport>(transport: &C) {
    for publisher_first in [true, false] {
        let (mut publisher, mut subscriber);
        if publisher_first {
            publisher = transport.publisher("a").expect("a publisher");
            subscriber = transport.subscriber(&["a"]).expect("a subscriber");
        } else {
            subscriber = transport.subscriber(&["a"]).expect("a subscriber");
            publisher = transport.publisher("a").expect("a publisher");
        }
        gather(&mut publisher, 1);
        publisher.send(b"found").expect("room");
        let mut record = Record::new();
        record.listen(&mut subscriber, |record| record.message_count() > 0);
        record.check_lives();
    }
}

/// Every publisher that comes and goes is a stream of its own.
pub fn publishers_come_and_go<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut record = Record::new();
    let mut sessions = Vec::new();
    for round in 0..20u64 {
        let mut publisher = transport.publisher("a").expect("a publisher");
        assert!(!sessions.contains(&publisher.session()), "never the same twice");
        sessions.push(publisher.session());
        gather(&mut publisher, 1);
        publisher.send(&round.to_le_bytes()).expect("room");
        drop(publisher);
        record.listen(&mut subscriber, |record| record.left().len() as u64 > round);
    }
    record.check_lives();
    assert_eq!((record.joined().len(), record.left().len()), (20, 20));
    let expected: Vec<[u8; 8]> = (0..20u64).map(u64::to_le_bytes).collect();
    assert_eq!(record.messages(), expected);
}

/// Two publishers on one topic are two streams, each in its order.
pub fn two_publishers_are_two_streams<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publishers = [0, 1].map(|_| transport.publisher("a").expect("a publisher"));
    publishers.iter_mut().for_each(|publisher| gather(publisher, 1));
    let sessions = [publishers[0].session(), publishers[1].session()];
    let mut record = Record::new();
    for number in 0..200u64 {
        for publisher in &mut publishers {
            publisher.send(&number.to_le_bytes()).expect("room");
        }
        record.exhaust(&mut subscriber);
    }
    record.listen(&mut subscriber, |record| record.message_count() == 400);
    assert_eq!(subscriber.streams(), 2);
    let [first, second] = publishers;
    drop(first);
    record.listen(&mut subscriber, |record| record.left().len() == 1);
    assert_eq!(record.left()[0].0.session, sessions[0], "the other goes on");
    drop(second);
    record.listen(&mut subscriber, |record| record.left().len() == 2);
    record.check_lives();
    let expected: Vec<[u8; 8]> = (0..200u64).map(u64::to_le_bytes).collect();
    sessions.iter().for_each(|session| assert_eq!(record.of_session(*session), expected));
}

/// A subscriber that is dropped frees the publisher, whether or not it was ever polled.
pub fn a_dropped_subscriber_holds_nobody_up<C: Transport>(transport: &C) {
    let mut publisher = transport.publisher("a").expect("a publisher");
    for polled in [true, false] {
        let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
        gather(&mut publisher, 1);
        if polled {
            let mut record = Record::new();
            record.listen(&mut subscriber, |record| !record.joined().is_empty());
        }
        fill(&mut publisher, 0, 500);
        drop(subscriber);
        until("the place to be free", || publisher.subscribers() == 0);
        publisher.send(b"room again").expect("room");
        assert!(publisher.drain(crate::PATIENCE).is_complete(), "polled before: {polled}");
    }
}

/// A message whose handler panicked counts as read; the next poll continues after it.
pub fn a_panicking_handler_has_consumed_its_message<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    (0..30u64).for_each(|number| publisher.send(&number.to_le_bytes()).expect("room"));
    let mut record = Record::new();
    let mut panics = 0;
    until("all messages", || {
        let poll = || {
            subscriber.poll(64, |event| {
                record.note(event);
                let fatal = matches!(event, Event::Message(message) if message.bytes()[0] % 7 == 3);
                // Quietly: without the hook's words and backtrace.
                if fatal {
                    std::panic::resume_unwind(Box::new(()));
                }
            });
        };
        panics += usize::from(catch_unwind(AssertUnwindSafe(poll)).is_err());
        record.message_count() >= 30
    });
    record.exhaust(&mut subscriber);
    record.check_lives();
    assert_eq!(panics, 4);
    let expected: Vec<[u8; 8]> = (0..30u64).map(u64::to_le_bytes).collect();
    assert_eq!(record.messages(), expected);
    assert!(publisher.drain(crate::PATIENCE).is_complete(), "the publisher was shown all of it");
}

/// The same holds for the last message of a poll: the publisher does not wait for it.
pub fn a_panic_on_the_last_message_leaves_nothing_unread<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    for round in 0..3 {
        publisher.send(b"fatal").expect("room");
        until("the message", || {
            let poll = || {
                subscriber.poll(64, |event| {
                    if matches!(event, Event::Message(_)) {
                        std::panic::resume_unwind(Box::new(()));
                    }
                });
            };
            catch_unwind(AssertUnwindSafe(poll)).is_err()
        });
        let drained = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !drained.load(Ordering::Relaxed) {
                    let work = subscriber.poll(64, |event| panic!("nothing was sent: {event:?}"));
                    subscriber.wait(work);
                }
            });
            let done = publisher.drain(crate::PATIENCE).is_complete();
            drained.store(true, Ordering::Relaxed);
            assert!(done, "round {round}: it has been read");
        });
    }
}

/// A panic in the handler of `Left` does not repeat it.
pub fn a_panic_at_a_farewell_repeats_nothing<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    publisher.send(b"only").expect("room");
    drop(publisher);
    let mut record = Record::new();
    until("the farewell", || {
        let poll = || {
            subscriber.poll(64, |event| {
                record.note(event);
                if matches!(event, Event::Left(..)) {
                    std::panic::resume_unwind(Box::new(()));
                }
            });
        };
        catch_unwind(AssertUnwindSafe(poll)).is_err()
    });
    record.exhaust(&mut subscriber);
    record.check_lives();
    assert_eq!(record.entries().len(), 3, "joined, one message, left");
    assert_eq!(subscriber.streams(), 0);
}
