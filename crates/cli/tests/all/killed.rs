//! `lanecast serve`, killed again and again while publishers load its durable topics: what it said
//! to be persisted is there, nothing else is, and everybody's numbers go on.

use crate::run::{Run, Stage, wait_for};
use lanecast_wire::command::{
    Ack, Field, Header, LENGTH_BYTES, begin_frame, end_frame, frame_total,
};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PUBLISHERS: [&str; 4] = ["ann", "ben", "cas", "dot"];
/// Messages that a publisher sends before it waits for what is said of them.
const AHEAD: u64 = 40;
const PATIENCE: Duration = Duration::from_secs(60);

const FILE: &str = r#"
[listen]
tcp = "127.0.0.1:0"
[storage]
directory = "kept"
segment = "32KiB"
checkpoint = 600
[[topic]]
name = "orders"
type = "json"
key = ["/id"]
durable = true
[[topic]]
name = "fills"
type = "json"
key = ["/id"]
durable = true
"#;

fn serve(stage: &Stage) -> (Run, String) {
    let server = stage.start("serve --config serve.toml");
    server.until_out("\n");
    let line = server.out();
    let address = line.trim_end().strip_prefix("content server listening on ");
    (server, address.expect("the ready line").to_owned())
}

/// A connection, in bytes: it ends when the server does.
struct Link {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Link {
    fn new(at: &str) -> Self {
        let stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, bytes: Vec::new() }
    }

    /// Sends a message; returns whether the server was still there.
    fn send(&mut self, payload: &str) -> bool {
        let mut frame = Vec::new();
        let start = begin_frame(&mut frame);
        frame.extend_from_slice(payload.as_bytes());
        end_frame(&mut frame, start);
        self.stream.write_all(&frame).is_ok()
    }

    /// The next acknowledgement's kind, status and number; `None` if the connection has ended.
    fn hear(&mut self) -> Option<(bool, u64)> {
        let mut length = [0; LENGTH_BYTES];
        self.stream.read_exact(&mut length).ok()?;
        self.bytes.resize(frame_total(&length)? - LENGTH_BYTES, 0);
        self.stream.read_exact(&mut self.bytes).ok()?;
        let header = Header::parse(&self.bytes).unwrap();
        let text = String::from_utf8_lossy(&self.bytes);
        assert_eq!(header.text(Field::Status).as_deref(), Some("success"), "{text}");
        let is_persisted = header.acks().unwrap().has(Ack::Persisted);
        Some((is_persisted, header.number(Field::Sequence).unwrap().unwrap()))
    }
}

/// The messages that a publisher sent and those that were acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    sent: u64,
    persisted: u64,
}

fn topic(number: u64) -> &'static str {
    if number.is_multiple_of(4) { "fills" } else { "orders" }
}

fn record(name: &str, number: u64) -> (String, String) {
    let id = format!("{name}{}", number * number % 89);
    let record = format!(r#"{{"id":"{id}","by":"{name}","n":{number}}}"#);
    (id, record)
}

/// The publisher's message of that number; every third one is a delta.
fn message(name: &str, number: u64) -> String {
    let command = if number.is_multiple_of(3) { "delta_publish" } else { "p" };
    let topic = topic(number);
    let header = format!(r#"{{"c":"{command}","t":"{topic}","s":{number},"a":"persisted"}}"#);
    header + &record(name, number).1
}

/// The expected records of a topic after the publisher's first `count` messages.
fn model(name: &str, of: &str, count: u64) -> Vec<String> {
    let numbers = (1..=count).filter(|number| topic(*number) == of);
    let records: BTreeMap<String, String> = numbers.map(|number| record(name, number)).collect();
    let mut lines: Vec<String> = records.into_values().collect();
    lines.sort_unstable();
    lines
}

/// Logs on and looks whether all is as it should be; gives where to go on.
fn verify(stage: &Stage, at: &str, name: &str, known: Known) -> (Link, Known) {
    let mut link = Link::new(at);
    let logon = format!(r#"{{"c":"logon","a":"processed","client_name":"{name}"}}"#);
    assert!(link.send(&logon));
    let (_, sequence) = link.hear().expect("an answer");
    let range = known.persisted..=known.sent;
    assert!(range.contains(&sequence), "{name}: {sequence} is not within {range:?}");
    for of in ["orders", "fills"] {
        let line = format!("query --server {at} -t {of} --type json --filter /by='{name}'");
        let text = stage.run(&line).good();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, model(name, of, sequence), "{name}'s {of} up to {sequence}");
    }
    (link, Known { sent: sequence, persisted: sequence })
}

/// Publishes until the server is gone, and counts in `heard` what is said to be persisted.
fn load(mut link: Link, name: &str, mut known: Known, heard: &AtomicU64) -> Known {
    loop {
        while known.sent < known.persisted + AHEAD {
            known.sent += 1;
            if !link.send(&message(name, known.sent)) {
                break;
            }
        }
        match link.hear() {
            Some((is_persisted, number)) => {
                assert!(is_persisted && number > known.persisted, "{number} after {known:?}");
                known.persisted = number;
                heard.fetch_add(1, Ordering::Relaxed);
            }
            None => return known,
        }
    }
}

#[test]
fn acknowledgements_of_a_killed_server_hold_after_its_restart() {
    let rounds = if std::env::var_os("LONG_TESTS").is_some() { 100 } else { 20 };
    let stage = Stage::new();
    stage.write("serve.toml", FILE);
    let mut known = [Known::default(); PUBLISHERS.len()];
    for round in 0..rounds {
        let (server, at) = serve(&stage);
        let heard = AtomicU64::new(0);
        // All of them before anybody publishes: what they are held to does not change meanwhile.
        let links: Vec<(Link, Known)> = PUBLISHERS
            .into_iter()
            .zip(known)
            .map(|(name, known)| verify(&stage, &at, name, known))
            .collect();
        std::thread::scope(|scope| {
            let loads: Vec<_> = PUBLISHERS
                .into_iter()
                .zip(links)
                .map(|(name, (link, known))| {
                    let heard = &heard;
                    scope.spawn(move || load(link, name, known, heard))
                })
                .collect();
            let enough = 1 + round * 229 % 700;
            wait_for("enough to be persisted", || {
                let is_broken = loads.iter().any(|load| load.is_finished());
                (heard.load(Ordering::Relaxed) >= enough || is_broken).then_some(())
            });
            server.signal("KILL");
            for (load, known) in loads.into_iter().zip(&mut known) {
                *known = load.join().expect("as it should be");
            }
        });
        assert_eq!(server.finish().code, None);
    }
    let (server, at) = serve(&stage);
    for (name, known) in PUBLISHERS.into_iter().zip(known) {
        assert!(known.persisted > 4 * rounds, "{name}: {known:?}");
        verify(&stage, &at, name, known);
    }
    server.signal("TERM");
    server.finish().good();
    let names = std::fs::read_dir(stage.path("kept")).unwrap();
    let is_checkpoint = |name: &str| name.ends_with(".checkpoint");
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().any(|name| is_checkpoint(&name)), "one was taken on the way");
    assert!(stage.run("journal verify kept").good().contains("it is whole"));
}
