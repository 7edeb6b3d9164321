//! Contract 9: waiting is a strategy; a waiting side is woken.

use crate::record::{gather, until};
use crate::{PATIENCE, Record};
use lanecast_transport::{Event, Publish, Subscribe, Transport};
use std::thread;
use std::time::Instant;

/// A wait without events returns, so that loops can do other work.
pub fn a_wait_is_bounded<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let start = Instant::now();
    let waits = 5;
    (0..waits).for_each(|_| subscriber.wait(0));
    subscriber.wait(1);
    let bound = subscriber.longest_wait() * waits + PATIENCE / 10;
    assert!(start.elapsed() < bound, "{waits} waits took {:?}", start.elapsed());
}

/// A subscriber that has waited for long receives the end.
pub fn a_waiting_subscriber_sees_the_farewell<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    let reader = thread::spawn(move || {
        let mut record = Record::new();
        record.listen(&mut subscriber, |record| !record.left().is_empty());
        record
    });
    publisher.send(b"last words").expect("room");
    assert!(publisher.drain(PATIENCE).is_complete(), "read by a waiting subscriber");
    assert!(publisher.close(PATIENCE).is_complete());
    let record = reader.join().expect("the reader");
    record.check_lives();
    assert_eq!(record.messages(), [b"last words"]);
}

/// Two sides that wait for each other's every message.
pub fn ping_and_pong<C: Transport>(transport: &C) {
    const ROUNDS: u64 = 300;
    let mut pings = transport.subscriber(&["ping"]).expect("a subscriber");
    let mut pongs = transport.subscriber(&["pong"]).expect("a subscriber");
    let mut ping = transport.publisher("ping").expect("a publisher");
    let mut pong = transport.publisher("pong").expect("a publisher");
    gather(&mut ping, 1);
    gather(&mut pong, 1);
    let echo = thread::spawn(move || {
        let mut echoed = 0;
        until("pings", || {
            let work = pings.poll(16, |event| {
                if let Event::Message(message) = event {
                    pong.send(message.bytes()).expect("room");
                    echoed += 1;
                }
            });
            pings.wait(work);
            echoed == ROUNDS
        });
        pong
    });
    let mut record = Record::new();
    for round in 0..ROUNDS {
        ping.send(&round.to_le_bytes()).expect("room");
        record.listen(&mut pongs, |record| record.message_count() as u64 > round);
        assert_eq!(record.message(round as usize), round.to_le_bytes());
    }
    drop(echo.join().expect("the echo"));
}
