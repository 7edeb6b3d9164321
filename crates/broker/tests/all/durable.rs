//! Topics that outlive their server.

use crate::test_server::{Client, Ended, Served, put_frame};
use lanecast_broker::{
    CatalogError, OpenError, Server, ServerConfig, StorageConfig, ViewDefinition,
};
use lanecast_filter::message_type::MessageType;
use lanecast_sow::TopicDefinition;
use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;

fn served(directory: &Path, checkpoint_after: u64) -> Served {
    Served::new(|settings| {
        let topic =
            |name| TopicDefinition::new(name, MessageType::Json).key("/id").expect("a path");
        settings.topics = vec![topic("brief"), topic("orders").durable(), topic("fills").durable()];
        let view =
            ViewDefinition::new("total", MessageType::Json, "orders").project("SUM(/qty) AS /qty");
        settings.views = vec![view];
        let segment_bytes = 64 << 10;
        settings.storage =
            Some(StorageConfig { segment_bytes, checkpoint_after, ..StorageConfig::at(directory) });
    })
}

fn state(client: &mut Client, topic: &str) -> Vec<String> {
    client.send(&format!(r#"{{"c":"sow","cid":"q","t":"{topic}","bs":100,"orderby":"/id"}}"#));
    client.answer("q")
}

#[test]
fn a_publisher_faster_than_the_disk_is_slowed_down() {
    publish_faster_than_the_disk_writes();
}

/// A wake-up that is lost once in a hundred times is found here: each repetition stops and resumes
/// a publisher more than a hundred times.
#[test]
#[ignore = "takes minutes: make test-long"]
fn a_publisher_slowed_down_a_thousand_times_always_resumes() {
    for _ in 0..1_000 {
        publish_faster_than_the_disk_writes();
    }
}

fn publish_faster_than_the_disk_writes() {
    const RECORDS: usize = 40;
    const ROUNDS: usize = 50;
    let directory = tempfile::tempdir().expect("a directory");
    let first = Served::new(|settings| {
        let topic = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
        settings.topics = vec![topic.durable()];
        // What thirty messages take: the disk is behind at once.
        settings.storage =
            Some(StorageConfig { waiting_bytes: 64 << 10, ..StorageConfig::at(directory.path()) });
    });
    let mut client = first.client();
    // Without acknowledgements, all messages must be stored.
    let note = "x".repeat(2_000);
    let mut burst = Vec::new();
    for round in 1..=ROUNDS {
        for id in 10..10 + RECORDS {
            let body = format!(r#"{{"id":{id},"round":{round},"note":"{note}"}}"#);
            put_frame(&mut burst, &format!(r#"{{"c":"p","t":"orders"}}{body}"#));
        }
    }
    client.stream.write_all(&burst).expect("it listens");
    let gone = r#"{"c":"sow_delete","cid":"d","t":"orders","filter":"/round < 50","a":"stats"}"#;
    client.send(gone);
    let answer = client.next().expect("an answer");
    assert!(answer.contains(r#""records_deleted":0"#), "none was lost: {answer}");
    client.flush();
    let Ended { all_taken, counters, .. } = first.ended();
    let numbers = (all_taken, counters.published, counters.refused);
    assert_eq!(numbers, (true, (RECORDS * ROUNDS) as u64, 0));
}

/// Under pressure many clients each send the first message that they want to be durable: none of
/// them has been slowed down before, and there is room for a few only.
#[test]
fn first_messages_of_many_publishers_are_all_stored_on_a_slow_disk() {
    const CLIENTS: usize = 100;
    let directory = tempfile::tempdir().expect("a directory");
    let served = Served::new(|settings| {
        let topic = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
        settings.topics = vec![topic.durable()];
        settings.storage =
            Some(StorageConfig { waiting_bytes: 4 << 10, ..StorageConfig::at(directory.path()) });
    });
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| served.client()).collect();
    let note = "x".repeat(2_000);
    for (id, client) in clients.iter_mut().enumerate() {
        client.send(&format!(r#"{{"c":"p","t":"orders"}}{{"id":{id},"note":"{note}"}}"#));
    }
    clients.iter_mut().for_each(Client::flush);
    assert_eq!(state(&mut clients[0], "orders").len(), CLIENTS);
    let Ended { counters, .. } = served.ended();
    assert_eq!((counters.published, counters.refused), (CLIENTS as u64, 0));
}

#[test]
fn persisted_records_survive_a_restart_and_repetitions_are_duplicates() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = served(directory.path(), 1_000);
    let (mut client, sequence) = first.named_client("desk");
    assert_eq!(sequence, 0);
    client.send(
        r#"{"c":"p","cid":"1","t":"orders","s":1,"a":"processed,persisted"}{"id":1,"qty":5}"#,
    );
    client.expect(r#"{"c":"ack","a":"processed","status":"success","cid":"1"}"#);
    client.expect(r#"{"c":"ack","a":"persisted","status":"success","cid":"1","s":1}"#);
    client.send(r#"{"c":"delta_publish","t":"orders","s":2}{"id":1,"qty":7}"#);
    client.send(r#"{"c":"p","t":"orders","s":3}{"id":2,"qty":1}"#);
    client.send(r#"{"c":"p","t":"fills","s":4}{"id":9}"#);
    client.send(r#"{"c":"p","t":"brief"}{"id":3}"#);
    client.send(r#"{"c":"sow_delete","cid":"2","t":"orders","a":"persisted"}{"id":2}"#);
    client.expect(r#"{"c":"ack","a":"persisted","status":"success","cid":"2"}"#);
    client.send(r#"{"c":"flush","cid":"3","a":"persisted"}"#);
    client.expect(r#"{"c":"ack","a":"persisted","status":"success","cid":"3"}"#);
    assert!(first.end());

    let second = served(directory.path(), 1_000);
    let (mut client, sequence) = second.named_client("desk");
    assert_eq!(sequence, 4);
    assert_eq!(state(&mut client, "orders"), [r#"{"id":1,"qty":7}"#]);
    assert_eq!(state(&mut client, "fills"), [r#"{"id":9}"#]);
    assert_eq!(state(&mut client, "total"), [r#"{"qty":7}"#], "the view is there at once");
    assert!(state(&mut client, "brief").is_empty());
    client.send(r#"{"c":"p","t":"orders","s":3,"a":"persisted"}{"id":2,"qty":1}"#);
    let told = client.next().expect("an acknowledgement");
    let begins = r#"{"c":"ack","a":"persisted","status":"success","s":3,"reason":"duplicate: "#;
    assert!(told.starts_with(begins), "{told}");
    assert_eq!(state(&mut client, "orders").len(), 1, "it had been published before");
    assert!(second.end());
}

#[test]
fn a_repeated_deletion_is_a_duplicate() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = served(directory.path(), 1_000);
    let (mut client, _) = first.named_client("desk");
    let commands = [
        r#"{"c":"p","t":"orders","s":1}{"id":1,"qty":1}"#,
        r#"{"c":"sow_delete","t":"orders","s":2,"filter":"/id > 0"}"#,
        r#"{"c":"p","t":"brief","s":3}{"id":1,"qty":1}"#,
        r#"{"c":"sow_delete","t":"brief","s":4}{"id":1}"#,
        r#"{"c":"sow_delete","t":"orders","s":5,"filter":"/id > 5"}"#,
        r#"{"c":"p","t":"orders","s":6}{"id":9,"qty":1}"#,
    ];
    commands.iter().for_each(|command| client.send(command));
    client.flush();
    // A publisher without an acknowledgement sends again.
    let (mut client, sequence) = first.named_client("desk");
    assert_eq!(sequence, 6);
    commands.iter().for_each(|command| client.send(command));
    assert_eq!(state(&mut client, "orders"), [r#"{"id":9,"qty":1}"#]);
    client.send(r#"{"c":"sow_delete","cid":"7","t":"orders","s":7,"filter":"/id=9","a":"stats"}"#);
    assert!(client.next().expect("numbers").contains(r#""records_deleted":1"#));
    assert!(first.end());
    let second = served(directory.path(), 1_000);
    let (mut client, sequence) = second.named_client("desk");
    assert_eq!(sequence, 7, "of deletions, too");
    client.send(r#"{"c":"p","t":"orders"}{"id":9,"qty":2}"#);
    client.send(r#"{"c":"sow_delete","cid":"7","t":"orders","s":7,"filter":"/id=9","a":"stats"}"#);
    assert!(client.next().expect("numbers").contains(r#""records_deleted":0"#));
    assert_eq!(state(&mut client, "orders"), [r#"{"id":9,"qty":2}"#]);
    assert!(second.end());
}

#[test]
fn checkpoints_are_taken_while_publishing_goes_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let names = || {
        let names = std::fs::read_dir(directory.path()).expect("a directory");
        let names = names.map(|entry| entry.expect("an entry").file_name().into_string());
        names.map(|name| name.expect("text")).collect::<Vec<_>>()
    };
    let first = served(directory.path(), 500);
    let (mut client, _) = first.named_client("desk");
    let mut sequence = 0;
    let is_taken = |names: &[String]| names.iter().any(|name| name.ends_with(".checkpoint"));
    while sequence < 20_000 && !(sequence >= 5_000 && is_taken(&names())) {
        for _ in 0..500 {
            sequence += 1;
            let body = format!(r#"{{"id":{},"qty":{sequence}}}"#, sequence % 700 + 1_000);
            client.send(&format!(r#"{{"c":"p","t":"orders","s":{sequence}}}{body}"#));
        }
        client.flush();
    }
    assert!(is_taken(&names()), "{:?}", names());
    let before = state(&mut client, "orders");
    assert!(first.end());
    let second = served(directory.path(), 500);
    let (mut client, restored) = second.named_client("desk");
    assert_eq!(restored, sequence);
    assert_eq!(state(&mut client, "orders"), before);
    assert!(second.end());
}

#[test]
fn messages_of_transient_topics_are_never_acknowledged_as_persisted() {
    let directory = tempfile::tempdir().expect("a directory");
    let served = served(directory.path(), 1_000);
    let mut client = served.client();
    for topic in ["brief", "passing"] {
        client.send(&format!(r#"{{"c":"p","t":"{topic}","a":"persisted"}}{{"id":1}}"#));
        let answer = client.next().expect("an answer");
        assert!(answer.contains("failure") && answer.contains("not persisted"), "{answer}");
    }
    client.send(r#"{"c":"p","t":"orders","a":"persisted"}{"qty":1}"#);
    let answer = client.next().expect("an answer");
    assert!(answer.contains("failure") && answer.contains("/id"), "{answer}");
    let mut again = ServerConfig::at((Ipv4Addr::LOCALHOST, 0).into());
    let topic =
        TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path").durable();
    again.topics = vec![topic];
    let error = Server::open(again.clone()).expect_err("it has nowhere to be");
    assert!(matches!(error, OpenError::Catalog(CatalogError::NoStorage(_))), "{error}");
    again.storage = Some(StorageConfig::at(directory.path()));
    let error = Server::open(again).expect_err("another server has it");
    assert!(error.to_string().starts_with("the durable topics in "), "{error}");
    assert!(served.end());
}

/// A server with these durable topics, which may forget those; or why it does not start.
fn with_topics(
    directory: &Path,
    topics: &[(&str, &str)],
    forget: &[&str],
) -> Result<Server, OpenError> {
    let mut settings = ServerConfig::at((Ipv4Addr::LOCALHOST, 0).into());
    let topic = |(name, key): &(&str, &str)| {
        TopicDefinition::new(name, MessageType::Json).key(key).expect("a path").durable()
    };
    settings.topics = topics.iter().map(topic).collect();
    let forget = forget.iter().map(|name| (*name).into()).collect();
    settings.storage = Some(StorageConfig { forget, ..StorageConfig::at(directory) });
    Server::open(settings)
}

#[test]
fn a_topic_missing_from_the_settings_for_one_run_is_not_lost() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = served(directory.path(), 10);
    let mut client = first.client();
    for id in 10..30 {
        client.send(&format!(r#"{{"c":"p","t":"orders"}}{{"id":{id},"qty":1}}"#));
        client.send(&format!(r#"{{"c":"p","t":"fills"}}{{"id":{id}}}"#));
    }
    client.send(r#"{"c":"flush","cid":"1","a":"persisted"}"#);
    client.expect(r#"{"c":"ack","a":"persisted","status":"success","cid":"1"}"#);
    assert!(first.end());
    let refused = |topics: &[(&str, &str)], forget: &[&str]| {
        let opened = with_topics(directory.path(), topics, forget);
        opened.map(drop).expect_err("not started").to_string()
    };
    // Also a view of what is on disk, and where nothing is to be durable any more.
    let error = refused(&[("fills", "/id")], &["total"]);
    assert!(error.contains("the topic orders") && error.contains("--forget"), "{error}");
    assert!(!error.contains("fills") && !error.contains("view"), "{error}");
    let error = refused(&[], &["total", "fills"]);
    assert!(error.contains("the topic orders"), "{error}");
    let error = refused(&[("orders", "/qty"), ("fills", "/id")], &["total"]);
    assert!(error.contains("(json, /id)") && error.contains("(json, /qty)"), "{error}");
    let error = refused(&[("orders", "/id"), ("fills", "/id")], &[]);
    assert!(error.contains("the view total"), "{error}");

    let again = served(directory.path(), 10);
    let mut client = again.client();
    assert_eq!((state(&mut client, "orders").len(), state(&mut client, "fills").len()), (20, 20));
    assert!(again.end());
    let opened = with_topics(directory.path(), &[("fills", "/id")], &["orders", "total", "fills"]);
    let mut opened = opened.expect("started");
    let words: Vec<String> = std::iter::from_fn(|| opened.next_log_line()).collect();
    assert!(words.len() == 2 && words[0].contains("orders"), "{words:?}");
    drop(opened);
    let empty = tempfile::tempdir().expect("a directory");
    drop(with_topics(empty.path(), &[], &[]).expect("nothing is lost"));
    assert_eq!(std::fs::read_dir(empty.path()).expect("a directory").count(), 0);
    let again = served(directory.path(), 10);
    let mut client = again.client();
    assert_eq!((state(&mut client, "orders").len(), state(&mut client, "fills").len()), (0, 20));
    assert!(again.end());
}
