use super::*;
use crate::settings::{NetSettings, Pacing};
use crate::{Network, Publisher, TransportKind};
use lanecast_transport::{CloseReason, Publish};
use std::time::Instant;

const LIMIT: Duration = Duration::from_secs(60);
const WINDOW_BYTES: usize = 64 << 10;
/// Two windows of one session, and what one read may bring beyond them.
const UNREAD_MAX: u64 = 2 * WINDOW_BYTES as u64 + (320 << 10) + (64 << 10);
const MESSAGES: u64 = 4_000;

/// A publisher that waits for nobody, and a subscriber that has joined it.
fn open(kind: TransportKind, receive_threads: usize) -> (Network, Publisher, Subscriber) {
    // A daemon of its own finds publishers: no other test is met.
    let network = Network::open(NetSettings {
        resolver_group: None,
        resolver_port: Some(0),
        window_bytes: WINDOW_BYTES,
        pacing: Pacing::None,
        receive_threads,
        ..NetSettings::default()
    });
    let network = network.expect("a network");
    let subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    let mut publisher = network.publisher(kind, "prices").expect("a publisher");
    assert!(publisher.wait_for_subscribers(1, LIMIT), "not joined");
    (network, publisher, subscriber)
}

/// Reads until the publisher has left; each message comes, or is reported as lost before.
fn read_to_the_end(publisher: Publisher, subscriber: &mut Subscriber) {
    drop(publisher);
    let (start, mut next, mut end) = (Instant::now(), 0, None);
    while end.is_none() {
        assert!(start.elapsed() < LIMIT, "{next} of {MESSAGES}, and not the end");
        let work = subscriber.poll(64, |event| match event {
            Event::Message(message) => {
                assert_eq!(message.number(), next);
                next += 1;
            }
            Event::Lost(gap) => {
                assert_eq!(gap.first, next);
                next += gap.count;
            }
            Event::Left(_, why) => end = Some(why),
            _ => {}
        });
        subscriber.wait(work);
    }
    assert_eq!((end, next), (Some(CloseReason::Closed), MESSAGES));
}

fn stays_bounded(kind: TransportKind) {
    let (_network, mut publisher, mut subscriber) = open(kind, 0);
    let mut most = 0;
    for _ in 0..MESSAGES {
        publisher.try_send(&[7; 1_000]).expect("it waits for nobody");
        let now = subscriber.now();
        let SessionsEnd::Driven(owner) = &mut subscriber.sessions else {
            panic!("no receive thread serves it");
        };
        let mut sessions = owner.lock();
        sessions.drive_for_owner(now);
        most = most.max(sessions.ready().unread());
    }
    assert!(most <= UNREAD_MAX, "{most} bytes for an owner that reads nothing");
    read_to_the_end(publisher, &mut subscriber);
}

#[test]
fn a_stream_of_datagrams_is_not_kept_for_a_subscriber_that_reads_nothing() {
    stays_bounded(TransportKind::Ru);
}

#[test]
fn a_connection_is_not_read_for_a_subscriber_that_reads_nothing() {
    stays_bounded(TransportKind::Tcp);
}

fn unread(subscriber: &Subscriber) -> (bool, u64) {
    let SessionsEnd::Served(served) = &subscriber.sessions else {
        panic!("a receive thread serves it");
    };
    served.unread()
}

#[test]
fn a_receive_thread_hands_over_no_more_than_a_subscriber_may_leave_unread() {
    for kind in [TransportKind::Ru, TransportKind::Tcp] {
        let (_network, mut publisher, mut subscriber) = open(kind, 1);
        let start = Instant::now();
        for published in 1..=MESSAGES {
            publisher.try_send(&[7; 1_000]).expect("it waits for nobody");
            // The thread keeps up, until it leaves the rest unread.
            while !unread(&subscriber).0
                && subscriber.sessions.counters().received.messages < published
            {
                assert!(start.elapsed() < LIMIT, "nothing is read");
                std::thread::yield_now();
            }
        }
        let (_, unread) = unread(&subscriber);
        assert!(unread <= UNREAD_MAX, "{unread} bytes for a subscriber that reads nothing");
        read_to_the_end(publisher, &mut subscriber);
    }
}
