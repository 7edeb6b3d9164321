//! Publishers and stores.

use crate::some_stores::{Stores, TIMEOUT, domain, send, until, until_stable};
use lanecast_store::{
    PersistentOptions, PersistentPublisher, SourceEvent, StoreOptions, StoreServer,
};
use lanecast_transport::{Event, Publish, Subscribe, Transport};
use lanecast_wire::store::StoreFrame;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn messages_become_stable_and_numbers_go_on_after_a_restart() {
    let mut stores = Stores::new(1);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 1_000);
    until_stable(&mut stores, &mut publisher);
    assert_eq!((publisher.stable(), stores.next(7)), (1_000, vec![Some(1_000)]));
    drop(publisher);

    stores.stop(0);
    stores.start(0);
    let mut publisher = stores.open(7);
    let events = until(&mut stores, &mut publisher, "registered", |_, it| it.is_registered());
    assert!(events.contains(&SourceEvent::Registered { next: 1_000 }), "{events:?}");
    assert_eq!(publisher.next(), 1_000);
    send(&mut stores, &mut publisher, 10);
    until_stable(&mut stores, &mut publisher);
    assert_eq!(stores.next(7), [Some(1_010)]);
}

#[test]
fn two_of_three_stores_are_enough_and_the_third_catches_up() {
    let mut stores = Stores::new(3);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 500);
    stores.stop(2);
    // More than the flight: the publisher forgets them, so the store copies them from others.
    send(&mut stores, &mut publisher, 15_000);
    until_stable(&mut stores, &mut publisher);
    stores.start(2);
    until(&mut stores, &mut publisher, "caught up", |stores, _| {
        stores.next(7) == [Some(15_500); 3]
    });
}

#[test]
fn a_store_that_lost_its_data_is_taken_back_when_it_has_copied_all() {
    let mut stores = Stores::new(3);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 12_000);
    until_stable(&mut stores, &mut publisher);
    stores.stop(1);
    stores.wipe(1);
    stores.start(1);
    until(&mut stores, &mut publisher, "copied", |stores, _| stores.next(7) == [Some(12_000); 3]);
    // It counts again: with another store gone its vote is needed.
    until(&mut stores, &mut publisher, "taken back", |_, publisher| publisher.members() == 2);
    stores.stop(0);
    send(&mut stores, &mut publisher, 10);
    until_stable(&mut stores, &mut publisher);
}

#[test]
fn a_store_that_has_not_answered_yet_is_no_subscriber() {
    let mut stores = Stores::new(3);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 1);
    until_stable(&mut stores, &mut publisher);
    drop(publisher);
    stores.stop(2);
    let mut publisher = stores.open(7);
    until(&mut stores, &mut publisher, "registered", |_, it| it.is_registered());
    assert_eq!((publisher.answering_stores(), publisher.subscribers()), (2, 0));
    stores.start(2);
    // It answers only when it is on the topic, and the answer is read in the next poll.
    until(&mut stores, &mut publisher, "the third is on the topic", |_, publisher| {
        assert_eq!(publisher.subscribers(), 0);
        publisher.publisher().subscribers() == 3
    });
    assert_eq!((publisher.answering_stores(), publisher.subscribers()), (2, 0));
    let mut subscriber = stores.domain.subscriber(&["orders"]).expect("a subscriber");
    until(&mut stores, &mut publisher, "one subscriber", |_, publisher| {
        subscriber.poll(1, |_| {});
        publisher.subscribers() == 1
    });
}

#[test]
fn a_second_publisher_under_the_same_id_takes_over() {
    let mut stores = Stores::new(1);
    let mut first = stores.open(7);
    send(&mut stores, &mut first, 10);
    let mut second = stores.open(7);
    until(&mut stores, &mut second, "registered", |_, it| it.is_registered());
    let is_superseded = |event: &SourceEvent| matches!(event, SourceEvent::Superseded { .. });
    let mut is_told = false;
    until(&mut stores, &mut second, "the first is told", |_, _| {
        first.poll(|event| is_told |= is_superseded(&event));
        is_told
    });
    let error = first.try_send(b"late").expect_err("refused");
    assert!(error.to_string().contains("another publisher") && !error.may_pass(), "{error}");
}

#[test]
fn messages_that_are_held_become_stable_when_the_publisher_stops() {
    let mut stores = Stores::new(1);
    let mut publisher = stores.open(7);
    until(&mut stores, &mut publisher, "registered", |_, it| it.is_registered());
    for round in 0..40_usize {
        // A message for each poll: the store takes them for a stream that goes on.
        let count = round % 9;
        let mut sent = 0;
        let deadline = Instant::now() + TIMEOUT;
        while sent < count || publisher.stable() < publisher.next() {
            assert!(Instant::now() < deadline, "round {round}: {} stable", publisher.stable());
            if sent < count && publisher.try_send(&[0; 100]).is_ok() {
                sent += 1;
            }
            let server = stores.servers[0].as_mut().expect("a running store");
            let work = server.poll().expect("a working disk");
            server.wait_at_most(work, Duration::from_millis(1));
            publisher.poll(|_| {});
        }
    }
    assert_eq!(publisher.stable(), (0..40).map(|round| round % 9).sum::<u64>());
}

#[test]
fn nothing_is_held_for_an_event_loop_that_polls_again_only_when_it_is_woken() {
    let mut stores = Stores::new(1);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 100);
    for _ in 0..50 {
        // Refused while the flight is full of messages whose answers are not read: never here.
        publisher.try_send(&[0; 100]).expect("room");
        stores.poll();
        let server = stores.servers[0].as_ref().expect("a running store");
        let deadline = Instant::now() + TIMEOUT;
        while server.stats().pending_bytes > 0 {
            assert!(Instant::now() < deadline, "messages wait for another poll");
            std::thread::yield_now();
        }
    }
    until_stable(&mut stores, &mut publisher);
}

#[test]
fn bad_names_directories_and_delays_are_refused_in_words() {
    let root = tempfile::tempdir().expect("a directory");
    let domain = domain(&root);
    let open = |name: &str, path: &Path| {
        let opened = StoreServer::open(domain.clone(), name, path, StoreOptions::default());
        opened.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(open("a.b", root.path()).contains("without dots"));
    let file = root.path().join("file");
    std::fs::write(&file, "").expect("written");
    assert!(open("a", &file).contains("file"), "{}", open("a", &file));
    let path = root.path().join("a");
    let server = StoreServer::open(domain.clone(), "a", &path, StoreOptions::default());
    let second = open("a", &path);
    assert!(second.contains("process"), "{second}");
    drop(server);
    let with_delay = |commit_delay: Duration| {
        let mut options = StoreOptions::default();
        options.commit_delay = commit_delay;
        StoreServer::open(domain.clone(), "a", &path, options)
    };
    let refused = with_delay(StoreOptions::COMMIT_DELAY_MAX + Duration::from_nanos(1)).err();
    let refused = refused.expect("too long").to_string();
    assert!(refused.contains("100.000001ms: 100ms is the longest"), "{refused}");
    drop(with_delay(StoreOptions::COMMIT_DELAY_MAX).expect("the longest delay"));
    let options = PersistentOptions::with_store("a");
    let refused = PersistentPublisher::open(&domain, "_store.a", 7, options).err();
    assert!(refused.expect("refused").to_string().contains("_store."));
}

#[test]
fn frames_that_are_none_are_counted_and_harm_nobody() {
    use lanecast_transport::{Publish, Transport};
    use lanecast_wire::store::{Ballot, StoreAddress, StoreFrame, TimedRecords};
    let mut stores = Stores::new(1);
    let mut hostile = stores.domain.publisher("_store.store-0").expect("a publisher");
    assert!(hostile.wait_for_subscribers(1, TIMEOUT));
    let frames: [&[u8]; 4] = [b"", b"x", &[0xff; 300], &[1; 24]];
    frames.iter().for_each(|frame| hostile.send(frame).expect("sent"));
    // An answer without a request.
    let (log, records) = (Ballot { epoch: 1, session: 3 }, TimedRecords::EMPTY);
    let answer = StoreFrame::Fetched { log, from: 0, first: 0, next: 0, records };
    let mut bytes = Vec::new();
    answer.write(StoreAddress { client: 3, source: 7, topic: "orders" }, &mut bytes);
    hostile.send(&bytes).expect("sent");
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 10);
    until_stable(&mut stores, &mut publisher);
    let stats = stores.servers[0].as_ref().expect("running").stats();
    assert_eq!(stats.foreign_frames, 5, "{stats:?}");
    assert_eq!(stats.clients, 1);
}

#[test]
fn a_publisher_learns_when_its_flight_is_full_and_when_there_is_room() {
    let mut stores = Stores::new(1);
    let mut options = PersistentOptions::new(stores.groups());
    options.settings.flight_messages = 10;
    let mut publisher =
        PersistentPublisher::open(&stores.domain, "orders", 7, options).expect("a publisher");
    until(&mut stores, &mut publisher, "registered", |_, publisher| publisher.is_registered());
    while publisher.try_send(b"body").is_ok() {}
    assert_eq!(publisher.in_flight(), 10);
    let mut events = Vec::new();
    publisher.poll(|event| events.push(event));
    assert_eq!(events, [SourceEvent::FlightSize { is_exceeded: true, messages: 10 }]);
    publisher.poll(|event| events.push(event));
    assert_eq!(events.len(), 1, "told once: {events:?}");
    let has_room = |event: &SourceEvent| {
        matches!(event, SourceEvent::FlightSize { is_exceeded: false, messages: 0..10 })
    };
    let events = until(&mut stores, &mut publisher, "room", |_, it| it.in_flight() == 0);
    assert_eq!(events.iter().filter(|event| has_room(event)).count(), 1, "{events:?}");
    assert!(publisher.try_send(b"body").is_ok());
}

/// A queue of the journal shorter than a poll's messages: they wait in the transport for the disk.
#[test]
fn a_full_queue_of_the_journal_has_no_message_sent_again() {
    const COUNT: u64 = 4_000;
    let mut stores = Stores::new(0);
    let mut options = StoreOptions::default();
    options.journal.max_pending_bytes = 32 << 10;
    stores.add(options);
    let mut requests = stores.domain.subscriber(&["_store.store-0"]).expect("a subscriber");
    // A publisher that tells how far it has come is asked for what is still on the way.
    let mut options = PersistentOptions::with_store("store-0");
    options.settings.retry = 3_600_000_000_000;
    let publisher = PersistentPublisher::open(&stores.domain, "orders", 7, options);
    let mut publisher = publisher.expect("a publisher");
    until(&mut stores, &mut publisher, "registered", |_, it| it.is_registered());
    let (mut sent, mut again) = (0, 0);
    until(&mut stores, &mut publisher, "stable", |_, publisher| {
        while sent < COUNT && publisher.try_send(&[1; 100]).is_ok() {
            sent += 1;
        }
        requests.poll(usize::MAX, |event| {
            let Event::Message(message) = event else { return };
            let frame = StoreFrame::read(message.bytes()).expect("a frame").1;
            again += u64::from(matches!(frame, StoreFrame::Resend { .. }));
        });
        publisher.stable() == COUNT
    });
    assert_eq!(again, 0, "frames of messages that the store had missed");
}
