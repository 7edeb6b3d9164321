//! Servers that are killed while clients publish: what they said to be persisted is there, and
//! the state is what each client's messages up to some number make of it.

use crate::test_server::{Client, Served};
use lanecast_broker::{Server, ServerConfig, StorageConfig};
use lanecast_filter::message_type::MessageType;
use lanecast_sow::TopicDefinition;
use lanecast_wire::command::{Ack, Field, Header, Records};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Set for the process that is to be killed: where its topics are.
const DIRECTORY: &str = "KILLED_SERVER";
/// Publishers.
const NAMES: [&str; 3] = ["ann", "ben", "cas"];

fn configure(settings: &mut ServerConfig, directory: &Path) {
    let topic = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
    settings.topics = vec![topic.durable()];
    let storage = StorageConfig { segment_bytes: 64 << 10, ..StorageConfig::at(directory) };
    settings.storage = Some(StorageConfig { checkpoint_after: 700, ..storage });
}

/// Not a test: what the killed process does.
#[test]
fn victim() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let mut settings = ServerConfig::at((Ipv4Addr::LOCALHOST, 0).into());
    configure(&mut settings, Path::new(&directory));
    let mut server = Server::open(settings).expect("a server");
    let at = server.address().expect("an address");
    writeln!(std::io::stdout().lock(), "\nat {at}").expect("a reader");
    loop {
        server.turn(Duration::from_millis(100)).expect("it goes on");
    }
}

/// A server in a process of its own, which does not outlive this.
struct Victim {
    process: Child,
    at: std::net::SocketAddr,
}

impl Victim {
    fn new(directory: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "kill::victim", "--nocapture"])
            .env(DIRECTORY, directory)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut lines = output.lines().map(|line| line.expect("text"));
        let at = lines.find_map(|line| line.strip_prefix("at ")?.parse().ok());
        Self { process, at: at.expect("it says where it listens") }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it is gone");
    }
}

/// The last sent and persisted message of a publisher.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    sent: u64,
    persisted: u64,
}

fn id(name: &str, number: u64) -> String {
    format!("{name}{}", number * number % 97)
}

/// The publisher's message of that number; every third one is a delta.
fn message(name: &str, number: u64) -> String {
    let command = if number.is_multiple_of(3) { "delta_publish" } else { "p" };
    let id = id(name, number);
    let header = format!(r#"{{"c":"{command}","t":"orders","s":{number},"a":"persisted"}}"#);
    format!(r#"{header}{{"id":"{id}","by":"{name}","n":{number}}}"#)
}

/// The publisher's records after that many messages.
fn model(name: &str, count: u64) -> BTreeMap<String, String> {
    let record = |n| (id(name, n), format!(r#"{{"id":"{}","by":"{name}","n":{n}}}"#, id(name, n)));
    (1..=count).map(record).collect()
}

fn state(client: &mut Client, name: &str) -> BTreeMap<String, String> {
    client.send(&format!(r#"{{"c":"sow","t":"orders","bs":50,"f":"/by = '{name}'"}}"#));
    let mut records = BTreeMap::new();
    loop {
        let payload = client.next().expect("it goes on");
        if payload.contains("group_end") {
            return records;
        }
        let header = Header::parse(payload.as_bytes()).expect("a header");
        if header.text(Field::Command).as_deref() != Some("sow") {
            continue;
        }
        for record in Records::new(header.body()) {
            let body = String::from_utf8(record.expect("whole").1.to_vec()).expect("text");
            let id = body.split('"').nth(3).expect("an id").to_owned();
            records.insert(id, body);
        }
    }
}

/// Reads one acknowledgement, if one comes before the end.
fn hear(client: &mut Client, known: &mut Known) -> bool {
    let Some(payload) = client.next() else { return false };
    let header = Header::parse(payload.as_bytes()).expect("a header");
    assert!(header.acks().expect("a list").has(Ack::Persisted), "{payload}");
    assert_eq!(header.text(Field::Status).as_deref(), Some("success"), "{payload}");
    let number = header.number(Field::Sequence).expect("a number").expect("there");
    // What was sent again is acknowledged again.
    known.persisted = known.persisted.max(number);
    true
}

/// Checks that the server has all persisted messages, and a prefix of those sent since.
fn verify(client: &mut Client, name: &str, known: &mut Known) {
    let sequence = client.log_on(name);
    let range = known.persisted..=known.sent;
    assert!(range.contains(&sequence), "{name}: {sequence} is not within {range:?}");
    assert_eq!(state(client, name), model(name, sequence), "{name} up to {sequence}");
    *known = Known { sent: sequence, persisted: sequence };
}

#[test]
fn persisted_messages_survive_kills() {
    let is_long = std::env::var_os("LONG_TESTS").is_some();
    let rounds = if is_long { 100 } else { 20 };
    let directory = tempfile::tempdir().expect("a directory");
    let mut known = [Known::default(); NAMES.len()];
    for round in 0..rounds {
        let victim = Victim::new(directory.path());
        let mut clients = NAMES.map(|_| Client::of(victim.at));
        for ((client, name), known) in clients.iter_mut().zip(NAMES).zip(&mut known) {
            verify(client, name, known);
            // Those that a client did not know to be here do no harm.
            let again = known.sent.saturating_sub(2) + 1;
            for number in again..=known.sent + 100 + round * 37 % 150 {
                client.send(&message(name, number));
                known.sent = known.sent.max(number);
            }
        }
        for heard in 0..round * 53 % 290 {
            let at = (heard % 3) as usize;
            if known[at].persisted == known[at].sent {
                break;
            }
            assert!(hear(&mut clients[at], &mut known[at]), "it is not killed yet");
        }
        drop(victim);
        for (client, known) in clients.iter_mut().zip(&mut known) {
            while hear(client, known) {}
        }
    }
    let served = Served::new(|settings| configure(settings, directory.path()));
    for (name, known) in NAMES.into_iter().zip(&mut known) {
        let mut client = served.client();
        verify(&mut client, name, known);
        client.flush();
        assert!(known.sent > rounds, "{name}: only {} were persisted", known.sent);
    }
    assert!(served.end());
}
