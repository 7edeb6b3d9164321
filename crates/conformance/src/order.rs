//! Contract 1: order, at most once, nothing lost in silence.

use crate::record::gather;
use crate::{Body, Record};
use lanecast_transport::{Claim, Publish, TopicId, Transport};
use std::thread;
use std::time::Duration;

/// Messages of any length: some ten times around a window of eight longest messages.
const MESSAGES: u64 = 1_000;

/// Every message arrives once, in order, with every byte, over many windows.
pub fn order_is_kept<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    let longest = publisher.longest_message();
    let writer = thread::spawn(move || {
        for number in 0..MESSAGES {
            let body = Body::new(number, longest);
            let mut claim = publisher.claim(body.len()).expect("room");
            body.write(&mut claim);
            claim.commit();
        }
        publisher.close(crate::PATIENCE).is_complete()
    });
    let mut record = Record::new();
    record.listen(&mut subscriber, |record| !record.left().is_empty());
    assert!(writer.join().expect("the writer"), "everything was read");
    record.check_lives();
    check(&record.messages(), 0, MESSAGES, longest);
}

/// Index of the topic of a message.
const fn topic_of(number: u64) -> usize {
    (number * number % 7 % 3) as usize
}

/// Topics of one session share one order, or have each its own.
pub fn order_is_kept_across_topics<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a", "b", "c"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    let topics = ["a", "b", "c"].map(|name| publisher.add_topic(name).expect("a topic"));
    assert_eq!(topics[0], TopicId::FIRST);
    gather(&mut publisher, 1);
    let longest = publisher.longest_message();
    let writer = thread::spawn(move || {
        for number in 0..MESSAGES {
            let topic = topics[topic_of(number)];
            publisher.send_on(topic, &Body::new(number, longest).bytes()).expect("room");
        }
        publisher
    });
    let mut record = Record::new();
    record.listen(&mut subscriber, |record| record.message_count() as u64 >= MESSAGES);
    drop(writer.join());
    record.listen(&mut subscriber, |record| record.left().len() == 3);
    record.check_lives();
    if transport.keeps_order_across_topics() {
        check(&record.messages(), 0, MESSAGES, longest);
    }
    for (index, topic) in ["a", "b", "c"].into_iter().enumerate() {
        let bodies = record.of_topic(topic);
        let numbers: Vec<u64> = (0..MESSAGES).filter(|it| topic_of(*it) == index).collect();
        assert_eq!(bodies.len(), numbers.len(), "all of {topic}");
        let numbered = numbers.into_iter().zip(bodies);
        numbered.for_each(|(number, bytes)| Body::new(number, longest).check(bytes));
    }
    let names: Vec<_> = record.joined().iter().map(|stream| stream.topic.clone()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

/// No bytes at all is a message, and so is the longest.
pub fn the_shortest_and_the_longest_arrive<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    let longest = publisher.longest_message();
    let lengths = [0, longest, 0, 0, 1, longest - 1, 7, 8, 9, 15, 16, 17, longest, 0];
    let mut record = Record::new();
    for (number, length) in (0u64..).zip(lengths.into_iter().cycle().take(70)) {
        publisher.send(&Body::of_length(number, length).bytes()).expect("room");
        record.listen(&mut subscriber, |record| record.message_count() as u64 > number);
        Body::of_length(number, length).check(record.message(number as usize));
    }
    record.check_lives();
}

/// Several subscribers each see the whole stream.
pub fn every_subscriber_sees_everything<C: Transport>(transport: &C) {
    let mut publisher = transport.publisher("a").expect("a publisher");
    let longest = publisher.longest_message();
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
            thread::spawn(move || {
                let mut record = Record::new();
                record.listen(&mut subscriber, |record| !record.left().is_empty());
                record
            })
        })
        .collect();
    gather(&mut publisher, readers.len());
    for number in 0..MESSAGES {
        publisher.send(&Body::new(number, longest).bytes()).expect("room");
    }
    assert!(publisher.close(crate::PATIENCE).is_complete(), "everything was read");
    for reader in readers {
        let record = reader.join().expect("a reader");
        record.check_lives();
        check(&record.messages(), 0, MESSAGES, longest);
    }
}

/// A late subscriber sees nothing from before and everything from then on, even while the
/// publisher runs.
pub fn late_subscribers_start_at_the_live_edge<C: Transport>(transport: &C) {
    let mut publisher = transport.publisher("a").expect("a publisher");
    for number in 0..100u64 {
        publisher.send(&number.to_le_bytes()).expect("room");
    }
    let mut second = transport.subscriber(&["a"]).expect("a subscriber");
    gather(&mut publisher, 1);
    let mut record = Record::new();
    publisher.send(&100u64.to_le_bytes()).expect("room");
    record.listen(&mut second, |record| record.message_count() > 0);
    assert_eq!(record.message(0), 100u64.to_le_bytes(), "the live edge");
    drop(second);

    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let writer = thread::spawn(move || {
        let mut number = 101u64;
        while stopped.try_recv().is_err() {
            publisher.send(&number.to_le_bytes()).expect("room");
            number += 1;
        }
        drop(publisher.drain(crate::PATIENCE));
        drop(publisher.close(Duration::ZERO));
        number
    });
    for _ in 0..10 {
        let mut late = transport.subscriber(&["a"]).expect("a subscriber");
        let mut record = Record::new();
        record.listen(&mut late, |record| record.message_count() >= 500);
        check_run(&record);
    }
    let mut last = transport.subscriber(&["a"]).expect("a subscriber");
    let mut record = Record::new();
    record.listen(&mut last, |record| record.message_count() > 0);
    stop.send(()).expect("the writer listens");
    record.listen(&mut last, |record| !record.left().is_empty());
    let end = writer.join().expect("the writer");
    check_run(&record);
    assert_eq!(record.messages().last(), Some(&&(end - 1).to_le_bytes()[..]));
}

/// Panics unless the messages are consecutive numbers.
fn check_run(record: &Record) {
    record.check_lives();
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let numbers: Vec<u64> = record.messages().into_iter().map(number).collect();
    let broken = numbers.windows(2).find(|pair| pair[1] != pair[0] + 1);
    assert_eq!(broken, None, "a gap or a repetition");
}

/// Panics unless `messages` are the bodies `first..end`.
fn check(messages: &[&[u8]], first: u64, end: u64, longest: usize) {
    assert_eq!(messages.len() as u64, end - first, "the number of messages");
    for (number, bytes) in (first..end).zip(messages) {
        Body::new(number, longest).check(bytes);
    }
}
