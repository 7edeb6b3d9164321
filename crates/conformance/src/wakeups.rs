//! Contract 9 for event loops: the descriptors of publishers and subscribers.

use crate::record::{fill, gather, until};
use crate::{Body, PATIENCE, Record};
use lanecast_os::epoll::Epoll;
use lanecast_os::event::wait_readable;
use lanecast_transport::{ClaimError, CloseReason, Event, Publish, Subscribe, Transport};
use std::os::fd::BorrowedFd;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The descriptor is unreadable for this long: nothing is on its way.
const QUIET: Duration = Duration::from_millis(20);

fn is_readable(descriptor: BorrowedFd<'_>, limit: Duration) -> bool {
    // Only time proves the descriptor unreadable: an interrupted sleep ends early, and a datagram
    // without an event makes it readable until the conductor has read it.
    let start = Instant::now();
    loop {
        let left = limit.saturating_sub(start.elapsed());
        let _ = wait_readable([descriptor], Some(left));
        let is_readable = wait_readable([descriptor], Some(Duration::ZERO)) == [true];
        if is_readable || left.is_zero() {
            return is_readable;
        }
    }
}

/// Sleeps until the descriptor is readable, then polls; no other wait.
fn listen<S: Subscribe>(
    record: &mut Record,
    subscriber: &mut S,
    limit: usize,
    done: impl Fn(&Record) -> bool,
) {
    while !done(record) {
        let descriptor = subscriber.wakeup().expect("a descriptor");
        assert!(is_readable(descriptor, PATIENCE), "slept through an event");
        subscriber.poll(limit, |event| record.note(event));
    }
}

/// Polls until the descriptor stays unreadable, as it does when everything was taken.
fn exhaust<S: Subscribe>(record: &mut Record, subscriber: &mut S) {
    until("an unreadable descriptor", || {
        record.exhaust(subscriber);
        !is_readable(subscriber.wakeup().expect("a descriptor"), QUIET)
    });
}

/// Unreadable when all is taken, readable from a message until a poll returns 0.
pub fn a_message_makes_the_descriptor_readable<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    assert!(is_readable(subscriber.wakeup().expect("a descriptor"), Duration::ZERO), "at first");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    let mut record = Record::new();
    for round in 0..10u64 {
        exhaust(&mut record, &mut subscriber);
        publisher.send(&round.to_le_bytes()).expect("room");
        publisher.send(b"another").expect("room");
        let descriptor = subscriber.wakeup().expect("a descriptor");
        assert!(is_readable(descriptor, PATIENCE), "round {round}");
        until("both messages", || {
            subscriber.poll(1, |event| record.note(event));
            let descriptor = subscriber.wakeup().expect("a descriptor");
            let has_all = record.message_count() as u64 == 2 * (round + 1);
            // The poll returned a message, not 0.
            assert!(!has_all || is_readable(descriptor, Duration::ZERO), "round {round}");
            has_all
        });
    }
    record.check_lives();
}

/// A program that only sleeps on the descriptor sees streams come and go.
pub fn streams_that_come_and_go_make_the_descriptor_readable<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a", "b"]).expect("a subscriber");
    let mut record = Record::new();
    for round in 1..=3 {
        exhaust(&mut record, &mut subscriber);
        let mut publisher = transport.publisher("a").expect("a publisher");
        listen(&mut record, &mut subscriber, 64, |record| record.joined().len() == 2 * round - 1);
        exhaust(&mut record, &mut subscriber);
        publisher.add_topic("b").expect("a topic");
        listen(&mut record, &mut subscriber, 64, |record| record.joined().len() == 2 * round);
        exhaust(&mut record, &mut subscriber);
        drop(publisher);
        listen(&mut record, &mut subscriber, 64, |record| record.left().len() == 2 * round);
    }
    assert!(record.left().iter().all(|(_, why)| *why == CloseReason::Closed));
    record.check_lives();
}

/// Messages at any distance in time, of two publishers: each ends the sleep.
pub fn a_loop_on_the_descriptor_misses_nothing<C: Transport>(transport: &C) {
    const COUNT: u64 = 400;
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let publishers = [0, 1].map(|_| transport.publisher("a").expect("a publisher"));
    let writers = publishers.map(|mut publisher| {
        gather(&mut publisher, 1);
        thread::spawn(move || {
            for number in 0..COUNT {
                publisher.send(&Body::of_length(number, 40).bytes()).expect("room");
                // From none to many: messages meet the reader before, in and after its sleep.
                (0..number % 17).for_each(|_| thread::yield_now());
            }
            publisher
        })
    });
    let mut record = Record::new();
    let all = 2 * COUNT as usize;
    listen(&mut record, &mut subscriber, 3, |record| record.message_count() == all);
    drop(writers.map(|writer| writer.join().expect("a writer")));
    record.check_lives();
}

/// One request at a time: each side sleeps on its descriptor for the other's message.
pub fn two_loops_on_descriptors_answer_each_other<C: Transport>(transport: &C) {
    const ROUNDS: usize = 100;
    let mut pings = transport.subscriber(&["ping"]).expect("a subscriber");
    let mut pongs = transport.subscriber(&["pong"]).expect("a subscriber");
    let mut ping = transport.publisher("ping").expect("a publisher");
    let mut pong = transport.publisher("pong").expect("a publisher");
    gather(&mut ping, 1);
    gather(&mut pong, 1);
    let echo = thread::spawn(move || {
        let mut record = Record::new();
        for round in 1..=ROUNDS {
            listen(&mut record, &mut pings, 64, |record| record.message_count() == round);
            pong.send(b"pong").expect("room");
        }
        pong
    });
    let mut record = Record::new();
    for round in 1..=ROUNDS {
        ping.send(b"ping").expect("room");
        listen(&mut record, &mut pongs, 64, |record| record.message_count() == round);
    }
    drop(echo.join().expect("the echo"));
}

/// A refused claim: unreadable until a subscriber reads, and again after the next claim.
pub fn room_makes_the_publishers_descriptor_readable<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    let mut record = Record::new();
    let mut sent = 0;
    for round in 0..4 {
        let descriptor = publisher.wakeup().expect("a descriptor");
        assert!(!is_readable(descriptor, QUIET), "round {round}: nothing was refused");
        until("a full window", || {
            sent += fill(&mut publisher, sent, 500);
            // The network still sends what is published, which may make room.
            !is_readable(publisher.wakeup().expect("a descriptor"), QUIET)
        });
        record.listen(&mut subscriber, |record| record.message_count() as u64 >= sent);
        record.exhaust(&mut subscriber);
        let descriptor = publisher.wakeup().expect("a descriptor");
        assert!(is_readable(descriptor, PATIENCE), "round {round}: all was read");
        until("room", || {
            let offered = publisher.try_send(&Body::of_length(sent, 500).bytes());
            let is_refused = matches!(offered, Err(ClaimError::BackPressured(_)));
            assert!(is_refused || offered == Ok(()), "{offered:?}");
            !is_refused
        });
        sent += 1;
    }
    record.listen(&mut subscriber, |record| record.message_count() as u64 >= sent);
    record.check_lives();
}

/// A publisher that only sleeps on its descriptor while its claims are refused.
pub fn a_publisher_on_the_descriptor_goes_on<C: Transport>(transport: &C) {
    const COUNT: u64 = 2_000;
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    let (refuse, refused) = mpsc::channel();
    let writer = thread::spawn(move || {
        publisher.wakeup().expect("a descriptor");
        for number in 0..COUNT {
            let bytes = Body::of_length(number, 400).bytes();
            while publisher.try_send(&bytes).is_err() {
                let _ = refuse.send(());
                let descriptor = publisher.wakeup().expect("a descriptor");
                assert!(is_readable(descriptor, PATIENCE), "slept through the room");
            }
        }
        publisher
    });
    // Nothing is read before: a reader could keep pace, however slowly it reads.
    refused.recv_timeout(PATIENCE).expect("the window is smaller than the messages");
    let mut record = Record::new();
    until("a quarter", || {
        subscriber.poll(5, |event| record.note(event));
        (0..10).for_each(|_| thread::yield_now());
        record.message_count() as u64 >= COUNT / 4
    });
    record.listen(&mut subscriber, |record| record.message_count() as u64 == COUNT);
    drop(writer.join().expect("the writer"));
    (0..COUNT)
        .zip(record.messages())
        .for_each(|(number, bytes)| Body::of_length(number, 400).check(bytes));
}

/// A program asks for the descriptor only after a claim was refused.
pub fn a_descriptor_asked_for_after_a_refusal_tells_of_room<C: Transport>(transport: &C) {
    for reads_before in [true, false] {
        let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
        let mut publisher = transport.publisher("a").expect("a publisher");
        gather(&mut publisher, 1);
        let mut record = Record::new();
        let mut sent = fill(&mut publisher, 0, 500);
        if !reads_before {
            publisher.wakeup().expect("a descriptor");
        }
        record.listen(&mut subscriber, |record| record.message_count() as u64 >= sent);
        record.exhaust(&mut subscriber);
        let body = Body::of_length(sent, 500).bytes();
        let start = Instant::now();
        loop {
            let descriptor = publisher.wakeup().expect("a descriptor");
            assert!(is_readable(descriptor, PATIENCE), "slept through the room");
            match publisher.try_send(&body) {
                Ok(()) => break,
                Err(ClaimError::BackPressured(_)) => assert!(start.elapsed() < PATIENCE),
                Err(other) => panic!("no back-pressure: {other}"),
            }
            record.exhaust(&mut subscriber);
        }
        sent += 1;
        record.listen(&mut subscriber, |record| record.message_count() as u64 == sent);
    }
}

/// A subscriber that goes instead of reading makes room as well.
pub fn a_subscriber_that_leaves_makes_room<C: Transport>(transport: &C) {
    let mut publisher = transport.publisher("a").expect("a publisher");
    publisher.wakeup().expect("a descriptor");
    let subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    gather(&mut publisher, 1);
    fill(&mut publisher, 0, 500);
    drop(subscriber);
    until("room", || {
        assert!(is_readable(publisher.wakeup().expect("a descriptor"), PATIENCE), "it has left");
        publisher.try_send(b"room again").is_ok()
    });
}

/// Several subscribers and publishers on one thread, by one set of descriptors.
pub fn many_ends_share_one_loop<C: Transport>(transport: &C) {
    const ENDS: usize = 4;
    const COUNT: usize = 50;
    let topics = ["a", "b", "c", "d"];
    let mut subscribers = topics.map(|topic| transport.subscriber(&[topic]).expect("a subscriber"));
    let mut publishers = topics.map(|topic| transport.publisher(topic).expect("a publisher"));
    let set = Epoll::new().expect("a set");
    for (key, subscriber) in (0..).zip(&mut subscribers) {
        set.add(subscriber.wakeup().expect("a descriptor"), key).expect("added");
    }
    for publisher in &mut publishers {
        gather(publisher, 1);
        let key = ENDS as u64;
        set.add(publisher.wakeup().expect("a descriptor"), key).expect("added");
    }
    let mut records = [0; ENDS].map(|_| Record::new());
    let (mut ready, mut sent) = (Vec::new(), 0);
    publishers[0].send(b"first").expect("room");
    // Each message causes the next one, on the next topic.
    while records.iter().any(|record| record.message_count() < COUNT) {
        set.wait(Some(PATIENCE), &mut ready).expect("a wait");
        assert!(!ready.is_empty(), "slept through an event");
        for key in &ready {
            let index = *key as usize;
            assert!(index < ENDS, "no claim was refused");
            let before = records[index].messages().len();
            subscribers[index].poll(64, |event| records[index].note(event));
            for _ in before..records[index].messages().len() {
                sent += 1;
                publishers[sent % ENDS].send(b"next").expect("room");
            }
        }
    }
    records.iter().for_each(Record::check_lives);
}

/// Waiting on the subscriber and sleeping on the descriptor take turns.
pub fn waits_and_the_descriptor_mix<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    let mut record = Record::new();
    exhaust(&mut record, &mut subscriber);
    let (ask, asked) = std::sync::mpsc::channel::<bool>();
    let writer = thread::spawn(move || {
        while let Ok(late) = asked.recv() {
            // Late: the reader is perhaps asleep by now.
            (0..if late { 200 } else { 0 }).for_each(|_| thread::yield_now());
            publisher.send(b"asked for").expect("room");
        }
        publisher
    });
    for round in 1..=40 {
        ask.send(round % 3 == 0).expect("the writer listens");
        if round % 2 == 0 {
            record.listen(&mut subscriber, |record| record.message_count() == round);
        } else {
            let work = subscriber.poll(64, |event| record.note(event));
            // It may end by the message, which then must not be missed by the descriptor.
            subscriber.wait(work);
            listen(&mut record, &mut subscriber, 64, |record| record.message_count() == round);
        }
    }
    drop(ask);
    drop(writer.join().expect("the writer"));
    record.check_lives();
}

/// Ends that come and go, with and without descriptors, while others sleep.
pub fn descriptors_come_and_go<C: Transport>(transport: &C) {
    let mut publisher = transport.publisher("a").expect("a publisher");
    let mut stays = transport.subscriber(&["a"]).expect("a subscriber");
    let mut record = Record::new();
    for round in 1..=8 {
        let mut guests = [0, 1].map(|_| transport.subscriber(&["a"]).expect("a subscriber"));
        gather(&mut publisher, 3);
        exhaust(&mut record, &mut stays);
        guests[round % 2].wakeup().expect("a descriptor");
        let mut others = [0, 1].map(|_| Record::new());
        publisher.send(b"to all").expect("room");
        for (guest, other) in guests.iter_mut().zip(&mut others) {
            listen(other, guest, 64, |other| other.message_count() > 0);
        }
        listen(&mut record, &mut stays, 64, |record| record.message_count() == round);
        drop(guests);
        until("the guests to be gone", || publisher.subscribers() == 1);
    }
    let events = record.entries().len();
    stays.poll(64, |event| assert!(!matches!(event, Event::Message(_)), "{event:?}"));
    assert_eq!(events, 9, "joined once, and a message each round");
}
