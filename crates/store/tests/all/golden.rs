//! The directory of a store that an earlier build of this version has written, kept in the tree:
//! every later store goes on with it.
//!
//! `make` has written the files in `tests/golden/store-1`, after which the store died; a new
//! version of the records or of checkpoints gets a directory of its own, made the same way.

use crate::some_stores::{Stores, TIMEOUT, send, until, until_stable};
use lanecast_shm::Domain;
use lanecast_store::{
    Acknowledgement, DurableOptions, DurableSubscriber, PersistentPublisher, ReceiverEvent,
    StoreOptions,
};
use std::path::Path;
use std::time::Instant;

const MESSAGES: u64 = 150;
const CONSUMED: u64 = 40;

/// A store with small files, and with a checkpoint now and then.
fn store() -> Stores {
    let mut options = StoreOptions::default();
    options.journal.segment_bytes = 16 << 10;
    options.journal.spare_segments = 0;
    options.checkpoint_bytes = 4_000;
    let mut stores = Stores::new(0);
    stores.add(options);
    stores
}

fn subscriber(stores: &Stores) -> DurableSubscriber<Domain> {
    let mut options = DurableOptions::new(stores.groups());
    options.acknowledgement = Acknowledgement::Explicit;
    let subscriber = DurableSubscriber::open(stores.domain.clone(), "orders", 99, options);
    subscriber.expect("a subscriber")
}

/// Messages of two runs, a receiver that has consumed some, and a checkpoint behind which records
/// follow.
fn make(stores: &mut Stores) -> PersistentPublisher<Domain> {
    let mut publisher = stores.open(7);
    send(stores, &mut publisher, MESSAGES / 2);
    until_stable(stores, &mut publisher);
    let mut reader = subscriber(stores);
    let mut received = 0;
    until(stores, &mut publisher, "received", |_, _| {
        reader.poll(64, |event| {
            received += u64::from(matches!(event, ReceiverEvent::Message(_)));
        });
        received >= CONSUMED
    });
    reader.acknowledge(7, CONSUMED - 1);
    until(stores, &mut publisher, "acknowledged", |_, _| {
        reader.poll(64, |_| {});
        reader.is_acknowledged()
    });
    drop((reader, publisher));
    let mut publisher = stores.open(7);
    send(stores, &mut publisher, MESSAGES / 2);
    until_stable(stores, &mut publisher);
    publisher
}

/// The store goes on where it was: a receiver with what it had not consumed, a publisher with its
/// numbers.
fn check(stores: &mut Stores) {
    let recovery = stores.servers[0].as_ref().expect("running").recovery();
    assert!(recovery.checkpoint.is_some() && recovery.refused.is_empty(), "{recovery:?}");
    let mut reader = subscriber(stores);
    let (mut next, deadline) = (CONSUMED, Instant::now() + TIMEOUT);
    while next < MESSAGES {
        assert!(Instant::now() < deadline, "{next}");
        stores.poll();
        reader.poll(64, |event| {
            if let ReceiverEvent::Message(message) = event {
                assert_eq!((message.source(), message.sequence()), (7, next));
                assert_eq!(message.bytes(), next.to_le_bytes());
                next += 1;
            }
        });
    }
    let mut publisher = stores.open(7);
    until(stores, &mut publisher, "registered", |_, publisher| publisher.is_registered());
    assert_eq!(publisher.next(), MESSAGES);
    send(stores, &mut publisher, 1);
    until_stable(stores, &mut publisher);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("the kept files") {
        let path = entry.expect("a file").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).expect("copied");
        }
    }
}

#[test]
fn a_store_of_this_version_goes_on_with_what_it_has_kept() {
    let mut stores = store();
    drop(make(&mut stores));
    stores.stop(0);
    stores.start(0);
    check(&mut stores);

    let mut stores = store();
    stores.stop(0);
    stores.wipe(0);
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/store-1");
    copy(&kept, &stores.path(0));
    stores.start(0);
    check(&mut stores);
}
