//! Every peer that was built brings everything over, there and back and one way, on loopback.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use lanecast_shm::{Domain, DomainSettings};
use rivals_kit::Line;
use rivals_network::end::End;
use rivals_network::peers::transport::Topics;
use rivals_network::peers::{CASES, Case};
use rivals_network::place::Role;

const PROGRAM: &str = env!("CARGO_BIN_EXE_rivals-network");
/// Slow enough for an unoptimised program on a busy machine.
const RATE: &str = "2000";

/// A program; killed when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(peer: &str, role: &str, port: usize, words: &[&str]) -> Killed {
    let mut command = Command::new(PROGRAM);
    command.args(["run", "--peer", peer, "--role", role, "--cpu", "0", "--messages", "500"]);
    command.args(["--rate", RATE, "--warmup-ms", "50", "--wait", "block"]);
    command.args(["--port", &port.to_string()]).args(words);
    Killed(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a program"))
}

/// The result lines of a waiting end and of one that begins; of the end that `measures`.
fn result(peer: &str, roles: [&str; 2], port: usize, words: &[&str], measures: usize) -> Line {
    let mut waiting = start(peer, roles[0], port, words);
    let mut notes = BufReader::new(waiting.0.stderr.take().expect("a pipe"));
    let mut ready = String::new();
    notes.read_line(&mut ready).expect("text");
    assert_eq!(ready, "ready\n", "{peer}");
    let beginning = start(peer, roles[1], port, words);
    let mut ends = [waiting, beginning];
    let mut text = String::new();
    let out = ends[measures].0.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut text).expect("text");
    Line::parse(&text)
}

#[test]
fn everything_arrives() {
    // Far from the ports that connections are given, and different in each run.
    let first = 20_000 + std::process::id() as usize % 1000 * 8;
    // What needs a server, or an interface of Ethernet, is tried by the comparison itself.
    let possible = |case: &&Case| case.peer != "nats" && !case.name.ends_with("-xdp");
    for (at, case) in CASES.iter().filter(possible).enumerate() {
        let port = first + at * 4;
        let line = if case.rows.iter().any(|row| row.contains("pingpong")) {
            result(case.name, ["pong", "ping"], port, &["--size", "24", "--latency"], 1)
        } else {
            result(case.name, ["sub", "pub"], port, &["--size", "1000", "--touch", "whole"], 0)
        };
        let counts = ["received", "lost", "damaged"].map(|key| line.number(key));
        assert_eq!(counts, [Some(500.0), Some(0.0), Some(0.0)], "{}: {line}", case.name);
    }
}

#[test]
fn a_transport_is_an_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings =
        DomainSettings { directory: folder.path().join("domain"), ..DomainSettings::default() };
    let transport = Domain::open(settings).expect("a domain");
    let mut pong = Topics::new(&transport, Role::Pong, 1, false).expect("an end");
    let mut ping = Topics::new(&transport, Role::Ping, 1, false).expect("an end");
    assert!(ping.send(3, |bytes| bytes.copy_from_slice(b"abc")).expect("joined"));
    let mut seen = Vec::new();
    let start = std::time::Instant::now();
    while seen.is_empty() && start.elapsed().as_secs() < 20 {
        pong.receive(|bytes| seen.extend_from_slice(bytes)).expect("polled");
    }
    assert_eq!(seen, b"abc");
}
