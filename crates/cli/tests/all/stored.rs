//! `lanecast store`, killed again and again under load: every message that was told to be stable is
//! found by a subscriber that comes later.

use crate::run::{Run, Stage, wait_for};
use lanecast::persistence::ReceiverEvent;
use lanecast::{Context, PersistentPublisher};

const STORES: [&str; 3] = ["a", "b", "c"];
const KILLS: usize = 6;
/// The same in `make test-long`.
const KILLS_LONG: usize = 200;
/// Messages between two kills, at least.
const MESSAGES: u64 = 400;

fn start(stage: &Stage, name: &str) -> Run {
    let domain = stage.path("domain");
    let line = format!("store {name} --data {name}.data --directory {}", domain.display());
    let store = stage.start(&line);
    store.until_out("store ");
    store
}

fn context(stage: &Stage) -> Context {
    let builder = Context::builder().set("shm.directory", stage.path("domain").display());
    builder.unwrap().build().unwrap()
}

/// Sends until `count` more messages are stable; returns the sequence after the last of them.
fn send(publisher: &mut PersistentPublisher, count: u64) -> u64 {
    let until = publisher.stable() + count;
    wait_for("stable messages", || {
        for _ in 0..16 {
            let body = publisher.next().to_string();
            // Refused before the registration, and when too many are not stable.
            if publisher.try_send(body.as_bytes()).is_err() {
                break;
            }
        }
        publisher.poll(|_| {});
        (publisher.stable() >= until).then(|| publisher.stable())
    })
}

#[test]
fn stable_messages_survive_the_kills_of_stores_and_publishers() {
    let stage = Stage::new();
    let mut stores = STORES.map(|name| Some(start(&stage, name)));
    let context = context(&stage);
    let open = || context.topic("orders").persistent(7).stores(STORES).publisher().unwrap();
    let mut publisher = open();
    let mut stable = 0;
    let is_long = std::env::var_os("LONG_TESTS").is_some();
    for kill in 0..if is_long { KILLS_LONG } else { KILLS } {
        stable = send(&mut publisher, MESSAGES).max(stable);
        stores[kill % 3].iter().for_each(|store| store.signal("KILL"));
        // Two of three are enough meanwhile.
        stable = send(&mut publisher, MESSAGES).max(stable);
        // A process that waits for the disk dies late, and has its directory until then.
        stores[kill % 3] = None;
        stores[kill % 3] = Some(start(&stage, STORES[kill % 3]));
        if kill % 4 == 3 {
            publisher = open();
        }
    }
    // All at once: then they have only their disks.
    stores.iter().flatten().for_each(|store| store.signal("KILL"));
    drop((publisher, stores));
    let stores = STORES.map(|name| start(&stage, name));

    let mut subscriber = context.topic("orders").durable(99).stores(STORES).subscriber().unwrap();
    let mut next = 0;
    wait_for("every stable message", || {
        subscriber.poll(64, |event| match event {
            ReceiverEvent::Message(message) => {
                let body = next.to_string();
                assert_eq!((message.sequence(), message.bytes()), (next, body.as_bytes()));
                next += 1;
            }
            ReceiverEvent::Lost { .. } | ReceiverEvent::Discarded { .. } => panic!("{event:?}"),
            _ => {}
        });
        (next >= stable).then_some(())
    });
    for store in stores {
        store.signal("TERM");
        assert!(store.finish().good().contains("orders of publisher 7: 0.."));
    }
}

#[test]
fn stores_with_bad_names_or_directories_are_refused_in_words() {
    let stage = Stage::new();
    stage.write("file", "");
    stage.refuses(2, "store", &[("a.b", "without dots")]);
    stage.refuses(1, "store", &[("a --data file", "file")]);
}
