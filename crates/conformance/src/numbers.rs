//! Messages are numbered by their publisher, on their topic: the same for every subscriber.

use crate::Record;
use crate::record::{Entry, gather, until};
use lanecast_transport::{Batch, ClaimError, Publish, Subscribe, TopicId, Transport};
use std::sync::mpsc;
use std::thread;

/// More than the low 16 bits of a number distinguish.
const EARLIER: u64 = 70_000;

/// Numbers run from 0 without holes on each topic, through claims, batches and what is aborted of
/// both, and two subscribers agree.
pub fn messages_are_numbered_on_their_topics<C: Transport>(transport: &C) {
    const TOPICS: [&str; 3] = ["a", "b", "c"];
    let mut publisher = transport.publisher("a").expect("a publisher");
    let topics = TOPICS.map(|name| publisher.add_topic(name).expect("a topic"));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let mut subscriber = transport.subscriber(&TOPICS).expect("a subscriber");
            thread::spawn(move || {
                let mut record = Record::new();
                record.listen(&mut subscriber, |record| record.left().len() == TOPICS.len());
                record
            })
        })
        .collect();
    gather(&mut publisher, readers.len());
    let mut next = [0u64; TOPICS.len()];
    for round in 0..300usize {
        let topic = round * round % 7 % TOPICS.len();
        let mut claim = publisher.claim_on(topics[topic], 8).expect("room");
        claim.fill(0xee);
        drop(claim);
        publisher.send_on(topics[topic], &next[topic].to_le_bytes()).expect("room");
        next[topic] += 1;
        // Every other batch is dropped, and its numbers are given again.
        let is_published = round % 2 == 0;
        until("room for a batch", || {
            let mut numbers = next;
            let mut batch = publisher.batch();
            for place in 0..5 {
                let topic = (round + place / 2) % TOPICS.len();
                let Ok(room) = batch.try_add(topics[topic], 8) else { return false };
                room.copy_from_slice(&numbers[topic].to_le_bytes());
                numbers[topic] += 1;
            }
            if is_published {
                batch.publish();
                next = numbers;
            }
            true
        });
    }
    assert!(publisher.close(crate::PATIENCE).is_complete(), "everything was read");
    for reader in readers {
        let record = reader.join().expect("a reader");
        record.check_lives();
        for (name, published) in TOPICS.into_iter().zip(next) {
            let numbers = numbers(&record, name);
            assert!(numbers.iter().copied().eq(0..published), "{name}: {numbers:?}");
        }
    }
}

/// A subscriber that joins late sees the numbers that the others see, even while the publisher
/// runs on a topic of which it has said much before.
pub fn late_subscribers_see_the_publisher_s_numbers<C: Transport>(transport: &C) {
    let mut publisher = transport.publisher("a").expect("a publisher");
    let other = publisher.add_topic("b").expect("a topic");
    let mut next = [0u64; 2];
    let mut publish = move |publisher: &mut C::Publisher, topic: TopicId| {
        let number = &mut next[topic.0 as usize];
        let sent = match publisher.try_send_on(topic, &number.to_le_bytes()) {
            Err(ClaimError::BackPressured(_)) => false,
            other => {
                other.expect("a live publisher");
                true
            }
        };
        *number += u64::from(sent);
        sent
    };
    for number in 0..EARLIER {
        let topic = if number % 1_000 == 0 { other } else { TopicId::FIRST };
        until("room", || publish(&mut publisher, topic));
    }
    let (stop, stopped) = mpsc::channel::<()>();
    let writer = thread::spawn(move || {
        let mut sent = 0u64;
        while stopped.try_recv().is_err() {
            let topic = if sent.is_multiple_of(10) { other } else { TopicId::FIRST };
            if publish(&mut publisher, topic) {
                sent += 1;
            } else {
                thread::yield_now();
            }
        }
        (publisher, publish)
    });
    for _ in 0..10 {
        let mut late = transport.subscriber(&["a", "b"]).expect("a subscriber");
        let mut record = Record::new();
        // A lost datagram holds up the topics in it only: one may wait while the other goes on.
        record.listen(&mut late, |record| {
            record.has_recent(&["a", "b"]) && record.entries().len() >= 500
        });
        record.check_lives();
        let (often, seldom) = (numbers(&record, "a"), numbers(&record, "b"));
        let firsts = (often.first(), seldom.first());
        let is_late = |first: Option<&u64>, earlier| first.is_some_and(|first| *first >= earlier);
        assert!(is_late(firsts.0, EARLIER - EARLIER / 1_000), "{firsts:?} of {}", record.summary());
        assert!(is_late(firsts.1, EARLIER / 1_000), "{firsts:?} of {}", record.summary());
    }
    // One that joins while nothing is published.
    stop.send(()).expect("the writer listens");
    let (mut publisher, mut publish) = writer.join().expect("the writer");
    let mut last = transport.subscriber(&["b"]).expect("a subscriber");
    let mut record = Record::new();
    until("two messages of a quiet topic", || {
        // Never waits for room, which this thread makes by reading.
        publish(&mut publisher, other);
        last.poll(usize::MAX, |event| record.note(event));
        record.message_count() >= 2
    });
    record.check_lives();
    assert!(numbers(&record, "b")[0] > EARLIER / 1_000);
}

/// The numbers of the messages on `wanted`, each of which has its own number as its bytes.
fn numbers(record: &Record, wanted: &str) -> Vec<u64> {
    let of_topic = record.entries().iter().filter_map(|entry| match entry {
        Entry::Message { topic, number, bytes, .. } if topic == wanted => Some((*number, bytes)),
        _ => None,
    });
    of_topic
        .map(|(number, bytes)| {
            assert_eq!(bytes[..], number.to_le_bytes(), "{wanted}: another message's number");
            number
        })
        .collect()
}
