//! Logons that wait for the journal, and failures of the disk.

use crate::config::storage::StorageConfig;
use crate::engine::tests::wait_for;
use crate::ids::ClientId;
use crate::test_broker::TestBroker;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::TopicDefinition;
use std::path::Path;

fn broker(directory: &Path, change: impl FnOnce(&mut StorageConfig)) -> TestBroker {
    let topic = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
    let mut storage = StorageConfig { segment_bytes: 16 << 10, ..StorageConfig::at(directory) };
    change(&mut storage);
    TestBroker::new(|config| {
        config.topics = vec![topic.durable()];
        config.storage = Some(storage);
    })
}

fn log_on(broker: &mut TestBroker) -> ClientId {
    let client = broker.client();
    broker.send(client, r#"{"c":"logon","cid":"l","a":"processed","client_name":"a"}"#);
    client
}

/// Publishes a message with that number; what it is answered with.
fn publish(broker: &mut TestBroker, client: ClientId, number: u64) -> Vec<String> {
    let note = "x".repeat(2_000);
    let body = format!(r#"{{"id":{number},"note":"{note}"}}"#);
    broker.send(client, &format!(r#"{{"c":"p","t":"orders","s":{number},"a":"processed"}}{body}"#));
    broker.received(client)
}

#[test]
fn a_logon_reports_a_sequence_number_once_its_message_is_on_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut broker = broker(directory.path(), |_| ());
    let mut client = log_on(&mut broker);
    broker.received(client);
    let mut number = 0;
    wait_for("a logon that waits for the disk", || {
        number += 1;
        assert_eq!(publish(&mut broker, client, number).len(), 1);
        client = log_on(&mut broker);
        !broker.engine.state.logons.is_empty() || {
            assert!(broker.received(client)[0].contains(&format!(r#""s":{number}"#)));
            false
        }
    });
    assert!(!broker.engine.continue_or_pause(client), "what else it sends waits for that");
    assert_eq!(broker.received(client), [""; 0]);
    let journal = broker.engine.state.catalog.store().expect("a store").last_position();
    wait_for("the disk", || {
        broker.turn();
        broker.engine.state.logons.is_empty()
    });
    assert!(broker.engine.state.catalog.store().expect("a store").is_persisted(journal));
    let heard = broker.received(client);
    assert!(heard.len() == 1 && heard[0].contains(&format!(r#""s":{number}"#)), "{heard:?}");
    assert!(broker.engine.resume(client));
}

#[test]
fn a_logon_never_reports_a_sequence_number_that_a_failed_disk_lost() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("state");
    let mut broker = broker(&place, |_| ());
    let client = log_on(&mut broker);
    broker.received(client);
    // The journal goes on in the segments that it has, and finds none behind them.
    std::fs::rename(&place, directory.path().join("away")).expect("a directory");
    let mut number = 0;
    wait_for("a disk that failed", || {
        number += 1;
        publish(&mut broker, client, number);
        broker.engine.state.catalog.store().expect("a store").has_failed()
    });
    let answer = publish(&mut broker, client, number + 1).concat();
    assert!(answer.contains("failure"), "{answer}");
    broker.turn();
    let words: Vec<String> = std::iter::from_fn(|| broker.engine.state.log.pop()).collect();
    assert!(words.iter().any(|it| it.contains("nothing is durable any more")), "{words:?}");
    let counters = broker.engine.counters();
    assert!(counters.disk_failed == 1 && counters.not_stored >= 1, "{counters:?}");
    let client = log_on(&mut broker);
    broker.turn();
    assert_eq!(broker.received(client), [""; 0], "that it has {number} would not be true");
    // Others are served, and it may come again.
    let other = broker.client();
    broker.send(other, r#"{"c":"sow","cid":"q","t":"orders","top_n":1}"#);
    broker.run_until_idle();
    assert!(!broker.received(other).is_empty());
    let due = broker.engine.next_deadline(broker.now).expect("the end of its patience");
    broker.now.monotonic_ns = broker.now.monotonic_ns.max(due) + 20_000_000_000;
    broker.turn();
    let departure = broker.engine.next_disconnect();
    assert_eq!(departure.map(|it| it.1), Some(crate::clients::DisconnectReason::NotPersisted));
}

#[test]
fn a_failed_checkpoint_is_logged_and_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("state");
    let mut broker = broker(&place, |storage| {
        (storage.segment_bytes, storage.checkpoint_after) = (1 << 20, 10);
    });
    let client = log_on(&mut broker);
    broker.received(client);
    std::fs::rename(&place, directory.path().join("away")).expect("a directory");
    (1..=15).for_each(|number| drop(publish(&mut broker, client, number)));
    wait_for("a word about it", || {
        broker.turn();
        broker.engine.state.log.iter().any(|word| word.contains("no checkpoint: "))
    });
    assert_eq!(broker.engine.counters().checkpoints_failed, 1, "not tried again at once");
}
