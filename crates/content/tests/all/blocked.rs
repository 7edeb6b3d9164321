//! A publisher that waits for a subscriber with a filter serves those without one.

use crate::stage::{Stage, until};
use lanecast::{Claim, Event, Publish, Subscribe};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Messages of the chain: several windows.
const COUNT: usize = 100;
/// A publisher that sends nothing for so long, after all was read, waits for room.
const STILL: Duration = Duration::from_millis(200);

/// Polls once; returns the number of messages.
fn read(subscriber: &mut impl Subscribe) -> usize {
    let mut count = 0;
    subscriber.poll(64, |event| match event {
        Event::Message(_) => count += 1,
        Event::Lost(_) | Event::Left(..) | Event::FilterInactive(_) => panic!("{event:?}"),
        _ => {}
    });
    count
}

/// A subscriber with a filter does not read, and the publisher waits for it in a chain of claims: a
/// newcomer joins meanwhile.
fn a_blocked_publisher_serves_those_without_a_filter(stage: &Stage) {
    let mut publisher =
        stage.publishers.topic("market").filterable().publisher().expect("a publisher");
    let mut filtered =
        stage.subscribers.topic("market").filter("/38 = 1").subscriber().expect("a subscriber");
    let mut witness = stage.subscribers.subscriber("market").expect("a subscriber");
    until("both have met the publisher", || {
        publisher.serve_filters();
        read(&mut filtered);
        read(&mut witness);
        filtered.active_streams() == 1 && publisher.subscribers() == 2
    });
    let body = format!("38=1\u{1}58={}\u{1}", "x".repeat(1_500)).into_bytes();
    let sent = Arc::new(AtomicUsize::new(0));
    // Not scoped: a failure of this thread drops the subscribers that the writer waits for.
    let writer = thread::spawn({
        let sent = Arc::clone(&sent);
        move || {
            let mut claim = publisher.claim(body.len()).expect("room");
            for number in 1..=COUNT {
                claim.copy_from_slice(&body);
                sent.store(number, Ordering::Relaxed);
                claim = claim.commit_and_claim_next(body.len()).expect("room");
            }
            claim.abort();
            publisher
        }
    });
    let (mut came, mut moved) = (0, Instant::now());
    until("the publisher waits", || {
        let more = read(&mut witness);
        came += more;
        if more > 0 || came < sent.load(Ordering::Relaxed) {
            moved = Instant::now();
        }
        moved.elapsed() > STILL
    });
    let mut newcomer = stage.subscribers.subscriber("market").expect("a subscriber");
    until("the newcomer has joined", || {
        read(&mut newcomer);
        read(&mut witness);
        newcomer.streams() == 1
    });
    assert!(!writer.is_finished(), "nothing was read");
    let mut came = 0;
    until("all matching messages", || {
        came += read(&mut filtered);
        read(&mut newcomer);
        read(&mut witness);
        came == COUNT
    });
    drop(writer.join().expect("the writer"));
}

#[test]
fn a_blocked_publisher_serves_those_without_a_filter_over_each_transport() {
    for transports in ["threads", "shm", "rm", "ru", "tcp", "shm+ru"] {
        a_blocked_publisher_serves_those_without_a_filter(&Stage::new(transports));
    }
}

/// A claim has found room in the datagram that the session of matching messages keeps open, and
/// that is sent before the commit. The subscriber with a filter does not read.
fn promised_room_stays(stage: &Stage) {
    let mut publisher =
        stage.publishers.topic("market").filterable().publisher().expect("a publisher");
    let mut filtered =
        stage.subscribers.topic("market").filter("/38 = 1").subscriber().expect("a subscriber");
    let mut witness = stage.subscribers.subscriber("market").expect("a subscriber");
    until("both have met the publisher", || {
        publisher.serve_filters();
        read(&mut filtered);
        read(&mut witness);
        filtered.active_streams() == 1 && publisher.subscribers() == 2
    });
    let body = format!("38=1\u{1}58={}\u{1}", "x".repeat(80)).into_bytes();
    let is_done = Arc::new(AtomicUsize::new(0));
    // Not scoped: a publisher that waits for room would hold up the failure.
    let writer = thread::spawn({
        let is_done = Arc::clone(&is_done);
        move || {
            let mut sent = 0;
            while publisher.try_claim(body.len()).map(Claim::abort).is_ok() {
                // As the conductor does for an owner that is elsewhere.
                publisher.pack();
                publisher.send_packed();
                publisher.try_send(&body).expect("the room that was there");
                // Several messages share a datagram.
                publisher.pack();
                for _ in 0..sent % 11 {
                    sent += usize::from(publisher.try_send(&body).is_ok());
                }
                sent += 1;
            }
            is_done.store(sent, Ordering::Release);
            // Not dropped: its end would come before the other thread has seen the count.
            (publisher, sent)
        }
    });
    let mut came = 0;
    until("the window is full, and no commit waits for room", || {
        came += read(&mut witness);
        is_done.load(Ordering::Acquire) > 0
    });
    let (publisher, sent) = writer.join().expect("the writer");
    assert!(sent > 100, "{sent}");
    assert_eq!(publisher.unpublished_matches(), 0);
}

#[test]
fn promised_room_stays_over_each_transport() {
    for transports in ["threads", "shm", "rm", "ru", "tcp", "shm+ru"] {
        promised_room_stays(&Stage::new(transports));
    }
}
