use super::*;
use crate::settings::{NetSettings, Pacing};
use crate::{Network, Publisher, TransportKind};
use lanecast_transport::{CloseReason, Publish};
use std::net::SocketAddr;
use std::time::Instant;

const LIMIT: Duration = Duration::from_secs(60);
const WINDOW_BYTES: usize = 64 << 10;
/// Two windows of one session, and what one read may bring beyond them.
const UNREAD_MAX: u64 = 2 * WINDOW_BYTES as u64 + (320 << 10) + (64 << 10);
const MESSAGES: u64 = 4_000;

/// A publisher with its own pacing and window, and a subscriber that has joined it.
fn open(
    kind: TransportKind,
    (pacing, window_bytes): (Pacing, usize),
    receive_threads: usize,
) -> ([Network; 2], Publisher, Subscriber) {
    // Found by a daemon of its own, and in a group of its own: no other test is met.
    let run = std::process::id() as u16;
    let group = SocketAddr::from(([239, 194, (run >> 8) as u8, run as u8], 21_990));
    let publishing = Network::open(NetSettings {
        group,
        resolver_group: None,
        resolver_port: Some(0),
        window_bytes,
        pacing,
        ..NetSettings::default()
    });
    let publishing = publishing.expect("a network");
    let subscribing = Network::open(NetSettings {
        resolver_group: None,
        resolvers: vec![publishing.resolver_address().expect("a daemon")],
        window_bytes: WINDOW_BYTES,
        receive_threads,
        ..NetSettings::default()
    });
    let subscribing = subscribing.expect("a network");
    let subscriber = subscribing.subscriber(&["prices"]).expect("a subscriber");
    let mut publisher = publishing.publisher(kind, "prices").expect("a publisher");
    assert!(publisher.wait_for_subscribers(1, LIMIT), "not joined");
    ([publishing, subscribing], publisher, subscriber)
}

/// Progress of a subscriber through the publisher's messages.
#[derive(Debug, Default)]
struct Reading {
    next: u64,
    lost: u64,
    end: Option<CloseReason>,
}

impl Reading {
    /// Reads once; each message comes, or is reported as lost before.
    fn poll(&mut self, subscriber: &mut Subscriber) {
        let work = subscriber.poll(64, |event| match event {
            Event::Message(message) => {
                assert_eq!(message.number(), self.next);
                self.next += 1;
            }
            Event::Lost(gap) => {
                assert_eq!(gap.first, self.next);
                (self.next, self.lost) = (self.next + gap.count, self.lost + gap.count);
            }
            Event::Left(_, why) => self.end = Some(why),
            _ => {}
        });
        subscriber.wait(work);
    }

    /// Reads until the publisher has left; returns the number of lost messages.
    fn read_to_the_end(mut self, publisher: Publisher, subscriber: &mut Subscriber) -> u64 {
        drop(publisher);
        let start = Instant::now();
        while self.end.is_none() {
            assert!(start.elapsed() < LIMIT, "{self:?}, and not the end");
            self.poll(subscriber);
        }
        assert_eq!((self.end, self.next), (Some(CloseReason::Closed), MESSAGES));
        self.lost
    }
}

/// Receives for the subscriber, as the conductor does; whether its sockets stay unread, and the
/// weight of what it has not read.
fn stand_in(subscriber: &mut Subscriber) -> (bool, u64) {
    let now = subscriber.now();
    let SessionsEnd::Driven(owner) = &mut subscriber.sessions else {
        panic!("no receive thread serves it");
    };
    let mut sessions = owner.lock();
    sessions.drive_for_owner(now);
    (sessions.is_behind(), sessions.ready().unread())
}

fn stays_bounded(kind: TransportKind) {
    let (_networks, mut publisher, mut subscriber) = open(kind, (Pacing::None, WINDOW_BYTES), 0);
    let mut most = 0;
    for _ in 0..MESSAGES {
        publisher.try_send(&[7; 1_000]).expect("it waits for nobody");
        most = most.max(stand_in(&mut subscriber).1);
    }
    assert!(most <= UNREAD_MAX, "{most} bytes for an owner that reads nothing");
    Reading::default().read_to_the_end(publisher, &mut subscriber);
}

/// A publisher that waits for a subscriber has a window far longer than is kept for that one.
#[test]
fn nothing_is_lost_while_the_sockets_stay_unread() {
    for kind in [TransportKind::Rm, TransportKind::Ru, TransportKind::Tcp] {
        let (_networks, mut publisher, mut subscriber) = open(kind, (Pacing::Slowest, 4 << 20), 0);
        let (mut reading, mut pauses) = (Reading::default(), 0);
        let start = Instant::now();
        for _ in 0..MESSAGES {
            while publisher.try_send(&[7; 1_000]).is_err() {
                assert!(start.elapsed() < LIMIT, "{reading:?}");
                reading.poll(&mut subscriber);
            }
            pauses += usize::from(stand_in(&mut subscriber).0);
        }
        assert!(pauses > 0, "all was read at once");
        assert_eq!(reading.read_to_the_end(publisher, &mut subscriber), 0, "{kind:?}");
    }
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
        let (_networks, mut publisher, mut subscriber) =
            open(kind, (Pacing::None, WINDOW_BYTES), 1);
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
        Reading::default().read_to_the_end(publisher, &mut subscriber);
    }
}

/// The owner may have seen the waker's call before it sleeps, in a poll of what else it reads.
#[test]
fn an_owner_that_has_missed_a_notification_does_not_sleep() {
    for receive_threads in [0, 1] {
        let (_networks, _publisher, mut subscriber) =
            open(TransportKind::Ru, (Pacing::None, WINDOW_BYTES), receive_threads);
        while subscriber.poll(64, |_| {}) > 0 {}
        subscriber.owner_state.notify();
        subscriber.sleep_in_background(|| panic!("it sleeps beside the notification"));
    }
}

/// A subscriber of two publishers by ru has a socket connected to one of them. What the other one
/// sends ends a sleep as well, and is read then, not after many more sleeps.
#[test]
fn a_read_after_a_sleep_looks_into_all_sockets() {
    let kind = TransportKind::Ru;
    let (networks, mut publisher, mut subscriber) = open(kind, (Pacing::Slowest, 4 << 20), 0);
    let start = Instant::now();
    let sockets = |subscriber: &mut Subscriber| {
        let mut descriptors = Vec::new();
        subscriber.sessions.descriptors(&mut descriptors);
        descriptors.len()
    };
    while sockets(&mut subscriber) < 2 {
        assert!(start.elapsed() < LIMIT, "none is connected");
        let _ = publisher.drain(Duration::ZERO);
        subscriber.poll(64, |_| {});
    }
    let mut other = networks[0].publisher(kind, "prices").expect("a publisher");
    assert!(other.wait_for_subscribers(1, LIMIT), "not joined");
    while subscriber.streams() < 2 {
        assert!(start.elapsed() < LIMIT, "not joined");
        subscriber.poll(64, |_| {});
    }
    let (mut sleeps, mut count) = (0, 0);
    for expected in 1..=16 {
        // An empty read: nothing is known to be anywhere.
        while subscriber.poll(64, |_| {}) > 0 {}
        subscriber.poll(64, |_| {});
        let publisher = if expected % 2 == 0 { &mut publisher } else { &mut other };
        publisher.send(b"gold").expect("room");
        while count < expected {
            assert!(start.elapsed() < LIMIT, "{count} messages");
            subscriber.sleep(LIMIT);
            sleeps += 1;
            subscriber.poll(64, |event| count += u64::from(matches!(event, Event::Message(_))));
        }
    }
    assert!(sleeps < 100, "{sleeps} sleeps for 16 messages");
}
