//! Clients that are paused while the journal is congested.

use crate::config::server_config::ServerConfig;
use crate::config::storage::StorageConfig;
use crate::engine::Engine;
use crate::engine::tests::wait_for;
use crate::ids::ClientId;
use crate::time::Now;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::TopicDefinition;

const NOW: Now = Now { monotonic_ns: 0, unix_ns: 0 };

fn engine(directory: &std::path::Path) -> Engine {
    let topic = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
    // One message is half of it.
    let storage = StorageConfig { waiting_bytes: 2_000, ..StorageConfig::at(directory) };
    let topics = vec![topic.durable()];
    let storage = Some(storage);
    Engine::new(ServerConfig { topics, storage, ..ServerConfig::default() }).expect("an engine")
}

/// Publishes until the journal is congested when the decision is taken.
fn pause(engine: &mut Engine, client: ClientId) {
    let note = "x".repeat(2_000);
    let payload = format!(r#"{{"c":"p","t":"orders"}}{{"id":1,"note":"{note}"}}"#);
    wait_for("a congested journal", || {
        engine.execute(NOW, client, payload.as_bytes());
        let continues = engine.continue_or_pause(client);
        if !continues
            && engine.state.clients.get(client).is_some_and(|client| client.deferred.is_some())
        {
            // It was congested before the command.
            wait_for("the disk", || engine.resume(client));
            engine.execute_deferred(NOW, client);
            return !engine.continue_or_pause(client);
        }
        !continues
    });
}

#[test]
fn a_paused_client_stays_paused_until_it_is_resumed() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut engine = engine(directory.path());
    let client = engine.connect(0).expect("there is room");
    pause(&mut engine, client);
    // The journal catches up between the decision and its consequences.
    wait_for("the disk", || !engine.state.catalog.is_congested());
    assert!(engine.is_paused(client), "what it sent waits, and is not to be forgotten");
    assert!(engine.has_progress(), "the server may not sleep");
    assert_eq!(engine.state.clients.take_paused(), [client]);
    assert!(engine.resume(client) && !engine.is_paused(client) && !engine.has_progress());
}

#[test]
fn a_running_client_is_read_however_far_the_disk_falls_behind() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut engine = engine(directory.path());
    let (client, other) = (engine.connect(0).expect("room"), engine.connect(0).expect("room"));
    engine.state.clients.get_mut(other).expect("it is here").writes_durably = true;
    pause(&mut engine, client);
    assert!(!engine.is_paused(other), "nothing would resume it");
}

#[test]
fn progress_of_the_disk_signals_the_eventfd() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut engine = engine(directory.path());
    let client = engine.connect(0).expect("there is room");
    pause(&mut engine, client);
    // As the server does: it sleeps only without progress.
    wait_for("a client that goes on", || {
        let has_progress = engine.has_progress();
        if !has_progress {
            engine.state.catalog.store().expect("a store").event().wait(None);
        }
        has_progress
    });
    let paused = engine.state.clients.take_paused();
    assert!(paused == [client] && engine.resume(client));
}
