//! Stores that start again: the records they read, and what their subscribers get afterwards.

use crate::some_stores::{Stores, TIMEOUT, send, until, until_stable};
use lanecast_shm::Domain;
use lanecast_store::{DurableOptions, DurableSubscriber, PersistentPublisher, ReceiverEvent};
use std::time::Instant;

const MESSAGES: u64 = 20_000;

/// A store that has kept messages, and written checkpoints meanwhile.
fn filled() -> (Stores, PersistentPublisher<Domain>) {
    let mut stores = Stores::new(1);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, MESSAGES);
    until_stable(&mut stores, &mut publisher);
    until(&mut stores, &mut publisher, "checkpoints", |stores, _| {
        stores.servers[0].as_ref().is_some_and(|it| it.stats().checkpoints >= 2)
    });
    (stores, publisher)
}

fn recovery(stores: &Stores) -> (bool, u64, usize) {
    let recovery = stores.servers[0].as_ref().expect("running").recovery();
    (recovery.checkpoint.is_some(), recovery.records, recovery.refused.len())
}

/// The messages that a new subscriber gets.
#[track_caller]
fn read_all(stores: &mut Stores, count: u64) {
    let options = DurableOptions::new(stores.groups());
    let subscriber = DurableSubscriber::open(stores.domain.clone(), "orders", 1, options);
    let mut subscriber = subscriber.expect("a subscriber");
    let (mut next, deadline) = (0, Instant::now() + TIMEOUT);
    while next < count {
        assert!(Instant::now() < deadline, "{next} of {count}");
        stores.poll();
        subscriber.poll(256, |event| {
            if let ReceiverEvent::Message(message) = event {
                assert_eq!(message.sequence(), next);
                assert_eq!(message.bytes(), next.to_le_bytes());
                next += 1;
            }
        });
    }
}

#[test]
fn a_store_that_ended_in_order_reads_nothing_again() {
    let (mut stores, publisher) = filled();
    drop(publisher);
    stores.stop(0);
    stores.start(0);
    assert_eq!(recovery(&stores), (true, 0, 0));
    read_all(&mut stores, MESSAGES);
}

#[test]
fn a_store_that_died_reads_the_records_behind_its_checkpoint() {
    let (mut stores, publisher) = filled();
    drop(publisher);
    drop(stores.servers[0].take());
    stores.start(0);
    let recovery = stores.servers[0].as_ref().expect("running").recovery();
    let (covered, records) = (recovery.checkpoint.expect("a checkpoint"), recovery.records);
    assert!(records < MESSAGES && covered + records > MESSAGES, "{recovery:?}");
    let mut publisher = stores.open(7);
    until(&mut stores, &mut publisher, "registered", |_, it| it.is_registered());
    assert_eq!(publisher.next(), MESSAGES);
    send(&mut stores, &mut publisher, 100);
    until_stable(&mut stores, &mut publisher);
    drop(publisher);
    read_all(&mut stores, MESSAGES + 100);
}

#[test]
fn a_store_with_damaged_checkpoints_reads_all_and_says_why() {
    let (mut stores, publisher) = filled();
    drop(publisher);
    stores.stop(0);
    let mut damaged = 0;
    for file in std::fs::read_dir(stores.path(0).join("journal")).expect("a directory") {
        let path = file.expect("a file").path();
        if path.extension().is_some_and(|it| it == "checkpoint") {
            let mut bytes = std::fs::read(&path).expect("read");
            bytes[30] ^= 1;
            std::fs::write(&path, bytes).expect("written");
            damaged += 1;
        }
    }
    assert_eq!(damaged, 2);
    stores.start(0);
    let (has_checkpoint, records, refused) = recovery(&stores);
    assert!(!has_checkpoint && records > MESSAGES && refused == 2, "{records} records");
    read_all(&mut stores, MESSAGES);
}
