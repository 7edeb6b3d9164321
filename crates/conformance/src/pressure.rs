//! Contract 3: back-pressure is a value; a slow subscriber loses nothing.

use crate::record::{fill, gather, until};
use crate::{Body, PATIENCE, Record};
use lanecast_transport::{Publish, Subscribe, Transport};
use std::thread;
use std::time::Duration;

const A_MOMENT: Duration = Duration::from_millis(20);

/// A full window returns back-pressure; once messages are read, there is room again.
pub fn back_pressure_is_a_value<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    let mut record = Record::new();
    let mut sent = 0;
    for round in 0..8u64 {
        let length = [100, 0, 1_000, 17][round as usize % 4];
        let before = sent;
        // Where threads of their own receive, they bring the report of what was read.
        until(&format!("room in round {round}"), || {
            sent += fill(&mut publisher, sent, length);
            sent > before
        });
        record.listen(&mut subscriber, |record| record.message_count() as u64 >= sent);
        record.exhaust(&mut subscriber);
        assert_eq!(record.message_count() as u64, sent);
        let news = record.messages().split_off(before as usize);
        (before..sent)
            .zip(news)
            .for_each(|(number, bytes)| Body::of_length(number, length).check(bytes));
    }
    record.check_lives();
}

/// A publisher that waits for room continues as soon as there is some.
pub fn a_blocked_publisher_goes_on<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    let (tell, told) = std::sync::mpsc::channel();
    let writer = thread::spawn(move || {
        let mut sent = 0;
        for _ in 0..50 {
            sent += fill(&mut publisher, sent, 500);
            tell.send(sent).expect("the reader listens");
            publisher.send(&Body::of_length(sent, 500).bytes()).expect("room in the end");
            sent += 1;
        }
        drop(tell);
        drop(publisher.close(PATIENCE));
        sent
    });
    let mut record = Record::new();
    while let Ok(full) = told.recv() {
        record.listen(&mut subscriber, |record| record.message_count() as u64 >= full);
    }
    record.listen(&mut subscriber, |record| !record.left().is_empty());
    let sent = writer.join().expect("the writer");
    assert_eq!(record.message_count() as u64, sent);
    (0..sent)
        .zip(record.messages())
        .for_each(|(number, bytes)| Body::of_length(number, 500).check(bytes));
}

/// One message at a time, with pauses: still all of them.
pub fn a_slow_subscriber_loses_nothing<C: Transport>(transport: &C) {
    let mut slow = transport.subscriber(&["a"]).expect("a subscriber");
    let mut fast = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 2);
    let longest = publisher.longest_message();
    let writer = thread::spawn(move || {
        for number in 0..400 {
            publisher.send(&Body::new(number, longest).bytes()).expect("room");
        }
        publisher
    });
    let reader = thread::spawn(move || {
        let mut record = Record::new();
        record.listen(&mut fast, |record| record.message_count() >= 400);
        record
    });
    let mut record = Record::new();
    until("all messages, one by one", || {
        let work = slow.poll(1, |event| record.note(event));
        assert!(work <= 1, "no more than asked for");
        // Each yield may cost a slice of every thread that spins: few, whatever the machine does.
        let count = record.message_count();
        if work == 1 && count.is_multiple_of(8) {
            (0..20).for_each(|_| thread::yield_now());
        }
        count >= 400
    });
    drop(writer.join().expect("the writer"));
    for record in [record, reader.join().expect("the fast reader")] {
        record.check_lives();
        (0..400)
            .zip(record.messages())
            .for_each(|(number, bytes)| Body::new(number, longest).check(bytes));
    }
}

/// Draining ends when all is read, and returns false otherwise.
pub fn draining_tells_whether_all_was_read<C: Transport>(transport: &C) {
    let mut publisher = transport.publisher("a").expect("a publisher");
    publisher.send(b"unread").expect("room");
    assert!(publisher.drain(PATIENCE).is_complete(), "no subscriber has anything to read");
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    assert!(!publisher.wait_for_subscribers(2, A_MOMENT), "there is only one");
    gather(&mut publisher, 1);
    assert_eq!(publisher.subscribers(), 1);
    assert!(publisher.drain(PATIENCE).is_complete(), "nothing was sent yet");
    publisher.send(b"something").expect("room");
    assert!(!publisher.drain(A_MOMENT).is_complete(), "no subscriber has read it");
    let drainer = thread::spawn(move || (publisher.drain(PATIENCE).is_complete(), publisher));
    let mut record = Record::new();
    until("the drain", || {
        let work = subscriber.poll(10, |event| record.note(event));
        subscriber.wait(work);
        drainer.is_finished()
    });
    let (drained, publisher) = drainer.join().expect("the drainer");
    assert!(drained, "it was read");
    assert_eq!(record.messages(), [b"something"]);
    drop(publisher);
}

/// Closing lingers until all is read, and returns whether it was.
pub fn closing_tells_whether_all_was_read<C: Transport>(transport: &C) {
    for (linger, read_while_closing) in [(PATIENCE, true), (A_MOMENT, false)] {
        let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
        let mut publisher = transport.publisher("a").expect("a publisher");
        gather(&mut publisher, 1);
        for number in 0..50u64 {
            publisher.send(&number.to_le_bytes()).expect("room");
        }
        let closer = thread::spawn(move || publisher.close(linger).is_complete());
        let mut record = Record::new();
        if !read_while_closing {
            until("the end of the linger", || closer.is_finished());
        }
        record.listen(&mut subscriber, |record| !record.left().is_empty());
        assert_eq!(closer.join().expect("the closer"), read_while_closing);
        assert_eq!(record.message_count(), 50, "nothing is lost either way");
        record.check_lives();
    }
}
