//! Contracts of publishers and subscribers that hold with filters, too: topics, numbers, batches
//! that are refused, and handlers that panic.

use crate::stage::{Stage, until};
use lanecast::{Batch, ClaimError, Event, Publish, Subscribe, TopicId};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The topic of a publisher that serves filters is its first, though its sessions have other names.
#[test]
fn the_topic_of_a_publisher_is_its_first() {
    for transports in ["threads", "shm", "rm", "ru", "tcp"] {
        let stage = Stage::new(transports);
        let open = |topic: &str| stage.publishers.topic(topic).filterable().publisher();
        let mut publisher = open("market").expect("a publisher");
        assert_eq!(publisher.add_topic("market").expect("known"), TopicId::FIRST);
        let other = publisher.add_topic("other").expect("a topic");
        assert_ne!(other, TopicId::FIRST);
        assert_eq!(publisher.add_topic("market").expect("known"), TopicId::FIRST);
        assert!(open("").is_err(), "no name");
    }
}

/// Messages that reports do not count have numbers as all others.
#[test]
fn uncounted_messages_have_numbers() {
    let stage = Stage::new("shm");
    let mut publisher =
        stage.publishers.topic("market").filterable().publisher().expect("a publisher");
    let mut plain = stage.subscribers.subscriber("market").expect("a subscriber");
    let mut filtered =
        stage.subscribers.topic("market").filter("/38 = 1").subscriber().expect("a subscriber");
    until("all have met", || {
        publisher.serve_filters();
        plain.poll(64, |_| ());
        filtered.poll(64, |_| ());
        publisher.subscribers() == 2 && filtered.active_streams() == 1
    });
    publisher.try_send_uncounted(b"38=1\x01").expect("room");
    publisher.send(b"38=1\x01").expect("room");
    let (mut all, mut matching) = (Vec::new(), Vec::new());
    until("all has come", || {
        let number = |event: Event<'_>| match event {
            Event::Message(message) => Some(message.number()),
            _ => None,
        };
        plain.poll(64, |event| all.extend(number(event)));
        filtered.poll(64, |event| matching.extend(number(event)));
        all.len() == 2 && matching.len() == 1
    });
    assert_eq!((&all[..], &matching[..]), (&[0, 1][..], &[1][..]));
}

/// A batch that is refused for want of room among all messages keeps its last message, which may
/// still change: it is evaluated as it is published.
#[test]
fn the_last_message_of_a_refused_batch_may_change() {
    let stage = Stage::new("threads");
    let mut publisher =
        stage.publishers.topic("market").filterable().publisher().expect("a publisher");
    let mut plain = stage.subscribers.subscriber("market").expect("a subscriber");
    let mut filtered =
        stage.subscribers.topic("market").filter("/38 = 1").subscriber().expect("a subscriber");
    until("all have met", || {
        publisher.serve_filters();
        plain.poll(64, |_| ());
        filtered.poll(64, |_| ());
        publisher.subscribers() == 2 && filtered.active_streams() == 1
    });
    let long = [&b"38=2\x0158="[..], &[b'x'; 4_000], b"\x01"].concat();
    until("a full window of all messages", || publisher.try_send(&long).is_err());
    let evaluations = publisher.evaluations();
    let mut batch = publisher.batch();
    batch.try_add(TopicId::FIRST, 5).expect("a little room").copy_from_slice(b"38=2\x01");
    for _ in 0..3 {
        let refused = batch.try_add(TopicId::FIRST, long.len()).map(|_| ());
        assert!(matches!(refused, Err(ClaimError::BackPressured(_))), "{refused:?}");
    }
    batch.last().copy_from_slice(b"38=1\x01");
    assert_eq!(batch.publish(), 1);
    assert_eq!(publisher.evaluations() - evaluations, 1);
    let mut matching = Vec::new();
    until("the match has come", || {
        filtered.poll(64, |event| {
            if let Event::Message(message) = event {
                matching.push(message.bytes().to_vec());
            }
        });
        !matching.is_empty()
    });
    assert_eq!(matching, [b"38=1\x01"]);
}

/// A handler that panics at an event has consumed it, and no other one.
#[test]
fn a_panic_at_an_event_keeps_the_others() {
    for transports in ["threads", "shm", "rm", "ru", "tcp"] {
        let stage = Stage::new(transports);
        let mut subscriber =
            stage.subscribers.topic("market").filter("/38 = 1").subscriber().expect("one");
        let plain = stage.publishers.publisher("market").expect("a publisher");
        let mut publisher =
            stage.publishers.topic("market").filterable().publisher().expect("a publisher");
        let mut seen = Vec::new();
        let mut poll = |seen: &mut Vec<&'static str>| {
            let polled = AssertUnwindSafe(|| {
                subscriber.poll(64, |event| {
                    seen.push(match event {
                        Event::Joined(_) => "joined",
                        Event::FilterActive(_) => "active",
                        Event::Message(_) => "message",
                        Event::Left(..) => "left",
                        other => panic!("{other:?}"),
                    });
                    // Quietly: without the hook's words and backtrace.
                    std::panic::resume_unwind(Box::new(()));
                });
            });
            let _ = catch_unwind(polled);
        };
        until("it is served", || {
            publisher.serve_filters();
            poll(&mut seen);
            seen.len() == 4 && publisher.subscribers() == 1
        });
        publisher.send(b"38=1\x01").expect("room");
        until("the message has come", || {
            poll(&mut seen);
            seen.len() == 5
        });
        drop((plain, publisher));
        until("all have left", || {
            poll(&mut seen);
            seen.len() == 7
        });
        assert_eq!(seen[4..], ["message", "left", "left"]);
        seen.sort_unstable();
        assert_eq!(seen, ["active", "active", "joined", "joined", "left", "left", "message"]);
    }
}
