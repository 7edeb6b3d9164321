//! A publisher that waits for a subscriber with a filter serves those without one.

use crate::stage::{Stage, until};
use lanecast::{Claim, ClaimError, Event, Publish, Subscribe};
use std::thread;

/// A message that matches, of which few fill a window.
fn long() -> Vec<u8> {
    format!("38=1\u{1}58={}\u{1}", "x".repeat(1_500)).into_bytes()
}

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
    let body = long();
    let (mut sent, mut came) = (0, 0);
    until("the window of matching messages is full", || match publisher.try_send(&body) {
        Ok(()) => {
            sent += 1;
            false
        }
        Err(ClaimError::BackPressured(_)) => {
            // It is full for this one only once this one has read everything.
            came += read(&mut witness);
            came == sent && publisher.try_send(&body).inspect(|()| sent += 1).is_err()
        }
        Err(other) => panic!("{other}"),
    });
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            // There is room for a short one still.
            let mut claim = publisher.try_claim(5).expect("room");
            claim.copy_from_slice(b"38=0\x01");
            let mut claim = claim.commit_and_claim_next(body.len()).expect("room");
            claim.copy_from_slice(&body);
            claim.commit();
        });
        until("the short one has come: the publisher waits", || {
            came += read(&mut witness);
            came == sent + 1
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
            came == sent + 1
        });
        writer.join().expect("the writer");
    });
}

#[test]
fn a_blocked_publisher_serves_those_without_a_filter_over_each_transport() {
    for transports in ["threads", "shm", "rm", "ru", "tcp", "shm+ru"] {
        a_blocked_publisher_serves_those_without_a_filter(&Stage::new(transports));
    }
}
