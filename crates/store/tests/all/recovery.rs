//! Stores that start again: the records they read, and what their subscribers get afterwards.

use crate::some_stores::{Stores, TIMEOUT, send, until, until_stable};
use lanecast_shm::Domain;
use lanecast_store::{
    DurableOptions, DurableSubscriber, PersistentPublisher, ReceiverEvent, SourceEvent,
};
use std::path::PathBuf;
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

/// The files of a store's journal with this ending, and their contents.
fn files(stores: &Stores, ending: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(stores.path(0).join("journal")).expect("a directory");
    let paths = files.map(|file| file.expect("a file").path());
    let paths = paths.filter(|path| path.extension().is_some_and(|it| it == ending));
    paths.map(|path| (path.clone(), std::fs::read(path).expect("read"))).collect()
}

/// A disk that loses its last writes, but for a checkpoint: with a store that has nothing of them
/// and this one, the messages would be forgotten.
#[test]
fn a_store_whose_journal_lacks_what_its_checkpoint_covers_does_not_count() {
    let mut stores = Stores::new(3);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 100);
    until_stable(&mut stores, &mut publisher);
    stores.stop(2);
    stores.stop(0);
    let (older, identity) = (files(&stores, "segment"), stores.path(0).join("incarnation"));
    stores.start(0);
    send(&mut stores, &mut publisher, 100);
    until_stable(&mut stores, &mut publisher);
    drop(publisher);
    stores.stop(0);
    stores.stop(1);
    let before = std::fs::read(&identity).expect("read");
    for (path, bytes) in older {
        std::fs::write(path, bytes).expect("written");
    }
    stores.start(0);
    assert!(stores.servers[0].as_ref().expect("running").recovery().has_lost_records);
    assert_ne!(std::fs::read(&identity).expect("read"), before);
    stores.start(2);
    let mut publisher = stores.open(7);
    let (mut is_told, deadline) = (false, Instant::now() + TIMEOUT);
    while !is_told {
        assert!(Instant::now() < deadline, "it waits for the store that has all");
        publisher.poll(|event| {
            is_told |= matches!(event, SourceEvent::Waiting { wiped, .. } if wiped == ["store-0"]);
        });
        assert!(!publisher.is_registered(), "stable messages are forgotten");
        stores.poll();
    }
    stores.start(1);
    until(&mut stores, &mut publisher, "registered", |_, it| it.is_registered());
    assert_eq!(publisher.next(), 200);
    // It becomes a member again, and keeps its identity from then on.
    until(&mut stores, &mut publisher, "another member", |_, it| it.members() > 1);
    drop(publisher);
    stores.stop(0);
    stores.start(0);
    assert!(!stores.servers[0].as_ref().expect("running").recovery().has_lost_records);
}
