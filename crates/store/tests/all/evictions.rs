//! Stores and subscribers that a publisher or a client went on without.

use crate::some_stores::TIMEOUT;
use lanecast_shm::{Domain, DomainSettings, Publisher, SlowConsumerPolicy, Subscriber, Visibility};
use lanecast_store::{
    DurableOptions, DurableSubscriber, PersistentOptions, PersistentPublisher, ReceiverEvent,
    StoreOptions, StoreServer,
};
use lanecast_transport::{Event, Publish, Subscribe, Transport};
use lanecast_wire::store::{Ballot, StoreAddress, StoreFrame};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// More messages than one poll reads.
const UNREAD: u64 = 400;
/// A client of the store, by its id.
const CLIENT: u64 = 0xa;

/// A store over a transport that evicts soon.
struct Stage {
    domain: Domain,
    store: StoreServer<Domain>,
    start: Instant,
    _directory: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let settings = DomainSettings {
            visibility: Visibility::Process,
            directory: directory.path().to_owned(),
            window_bytes: 64 << 10,
            slow_consumer: SlowConsumerPolicy::EvictAfter(Duration::from_millis(10)),
            ..DomainSettings::default()
        };
        let domain = Domain::open(settings).expect("a domain");
        let (path, options) = (directory.path().join("store"), StoreOptions::default());
        let store = StoreServer::open(domain.clone(), "a", &path, options).expect("a store");
        Self { domain, store, start: Instant::now(), _directory: directory }
    }

    fn check_time(&self, what: &str) {
        assert!(self.start.elapsed() < TIMEOUT, "in vain: {what}");
    }

    /// A publisher that its store has accepted.
    fn publisher(&mut self, source: u64) -> PersistentPublisher<Domain> {
        let options = PersistentOptions::with_store("a");
        let opened = PersistentPublisher::open(&self.domain, "orders", source, options);
        let mut publisher = opened.expect("a publisher");
        while !publisher.is_registered() {
            self.check_time("registered");
            publisher.poll(|_| {});
            self.store.poll().expect("a working disk");
        }
        publisher
    }

    /// The way of a client to the store, and that of the replies.
    fn client(&self) -> (Publisher, Subscriber) {
        let replies = self.domain.subscriber(&[&format!("_store.a.{CLIENT:016x}")]);
        let mut link = self.domain.publisher("_store.a").expect("a publisher");
        assert!(link.wait_for_subscribers(1, TIMEOUT));
        (link, replies.expect("replies"))
    }

    /// The publisher sends until it goes on without one of its subscribers, which does not read.
    fn evict(&mut self, publisher: &mut PersistentPublisher<Domain>, polls_store: bool) {
        let before = publisher.publisher().subscribers();
        while publisher.publisher().subscribers() == before {
            self.check_time("evicted");
            let _ = publisher.try_send(&[7; 1_000]);
            publisher.poll(|_| {});
            if polls_store {
                self.store.poll().expect("a working disk");
            }
        }
    }
}

#[test]
fn a_store_that_is_evicted_by_one_publisher_learns_that_another_has_ended() {
    let mut stage = Stage::new();
    // In whatever order the store reads them.
    let others = [8, 9].map(|source| stage.publisher(source));
    let mut first = stage.publisher(7);
    let later = [10, 11].map(|source| stage.publisher(source));
    for mut other in others.into_iter().chain(later) {
        for _ in 0..UNREAD {
            other.try_send(b"body").expect("room");
        }
    }
    stage.evict(&mut first, false);
    let (mut link, mut replies) = stage.client();
    let (receiver, token, since_unix_ns, until_unix_ns) = (9, 1, 0, 0);
    let frame = StoreFrame::Attach { receiver, token, since_unix_ns, until_unix_ns };
    let mut bytes = Vec::new();
    frame.write(StoreAddress { client: CLIENT, source: 0, topic: "orders" }, &mut bytes);
    let mut left = BTreeSet::new();
    while left.len() < 4 {
        stage.check_time(&format!("of all, the store has seen leave {left:?}"));
        stage.store.poll().expect("a working disk");
        let _ = link.try_send(&bytes);
        replies.poll(usize::MAX, |event| {
            if let Event::Message(message) = event
                && let Ok((address, StoreFrame::Offer(offer))) = StoreFrame::read(message.bytes())
            {
                let has_left = offer.has_left && offer.state.next == UNREAD;
                left.extend(has_left.then_some(address.source));
            }
        });
    }
}

/// Adds the numbers of messages that no store keeps.
fn read(subscriber: &mut DurableSubscriber<Domain>, numbers: &mut Vec<u64>) {
    subscriber.poll(64, |event| {
        if let ReceiverEvent::Unkept { number, .. } = event {
            numbers.push(number);
        }
    });
}

#[test]
fn a_subscriber_that_is_evicted_by_one_publisher_gets_what_another_had_sent_before_its_end() {
    let mut stage = Stage::new();
    let mut first = stage.publisher(7);
    let options = DurableOptions::with_store("a");
    let opened = DurableSubscriber::open(stage.domain.clone(), "orders", 9, options);
    let mut subscriber = opened.expect("a subscriber");
    while !subscriber.is_live(7) {
        stage.check_time("joined");
        subscriber.poll(64, |_| {});
        stage.store.poll().expect("a working disk");
        first.poll(|_| {});
    }
    let mut unkept = stage.domain.publisher("orders").expect("a publisher without stores");
    assert!(unkept.wait_for_subscribers(2, TIMEOUT));
    let mut numbers = Vec::new();
    while numbers.is_empty() {
        stage.check_time("the first message that no store keeps");
        let _ = unkept.try_send(b"body");
        read(&mut subscriber, &mut numbers);
        stage.store.poll().expect("a working disk");
        first.poll(|_| {});
    }
    for _ in 0..UNREAD {
        unkept.try_send(b"body").expect("room");
        stage.store.poll().expect("a working disk");
    }
    drop(unkept);
    // It reads nothing of the second one, from its beginning to its end.
    let mut second = stage.publisher(8);
    for _ in 0..UNREAD {
        while second.try_send(b"body").is_err() {
            stage.check_time("room");
            second.poll(|_| {});
            stage.store.poll().expect("a working disk");
        }
    }
    drop(second);
    stage.evict(&mut first, true);
    let (mut messages, mut ends) = (Vec::new(), Vec::new());
    while ends.is_empty() || messages.len() < UNREAD as usize || !subscriber.is_live(7) {
        stage.check_time(&format!("{ends:?} behind {} messages", messages.len()));
        subscriber.poll(256, |event| match event {
            ReceiverEvent::Message(message) if message.source() == 8 => {
                messages.push(message.sequence());
            }
            ReceiverEvent::Left { source: 8, next } => ends.push(next),
            ReceiverEvent::Unkept { number, .. } => numbers.push(number),
            _ => {}
        });
        stage.store.poll().expect("a working disk");
        first.poll(|_| {});
    }
    assert_eq!(messages, (0..UNREAD).collect::<Vec<_>>());
    assert_eq!(ends, [UNREAD]);
    assert!(numbers.len() as u64 > UNREAD, "{}", numbers.len());
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_store_hears_a_client_again_that_went_on_without_it() {
    let mut stage = Stage::new();
    let (mut link, mut replies) = stage.client();
    let mut bytes = Vec::new();
    let frame = StoreFrame::Query { ballot: Ballot { epoch: 1, session: 1 }, next: 0 };
    frame.write(StoreAddress { client: CLIENT, source: 7, topic: "orders" }, &mut bytes);
    // The store stands still until its client has gone on without it.
    while link.subscribers() > 0 {
        stage.check_time("evicted");
        let _ = link.try_send(&bytes);
    }
    let mut is_answered = false;
    while !is_answered {
        stage.check_time("heard again");
        stage.store.poll().expect("a working disk");
        let _ = link.try_send(&bytes);
        replies.poll(usize::MAX, |event| {
            is_answered |= link.subscribers() > 0 && matches!(event, Event::Message(_));
        });
    }
}
