//! `lanecast resolve`, and clients of it that mean no good.

use crate::run::{Run, Stage, wait_for};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const ADVERT: u8 = 13;
const QUERY: u8 = 14;
const ALL: u16 = 2;

/// A frame, byte by byte as `docs/protocol/resolution.md` has it.
fn frame(kind: u8, flags: u16, resolver: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = b"LC\x02".to_vec();
    bytes.push(kind);
    bytes.extend(flags.to_le_bytes());
    bytes.extend((24 + body.len() as u16).to_le_bytes());
    bytes.extend(resolver.to_le_bytes());
    bytes.extend(0_u64.to_le_bytes());
    bytes.extend(body);
    bytes
}

fn names(names: &[String]) -> Vec<u8> {
    let name = |name: &String| [&(name.len() as u16).to_le_bytes(), name.as_bytes()].concat();
    names.iter().flat_map(name).collect()
}

/// An entry of a session that sends by unicast from 127.0.0.1:9.
fn entry(session: u64, topics: &[String]) -> Vec<u8> {
    let list = names(topics);
    let mut bytes = session.to_le_bytes().to_vec();
    bytes.resize(24, 0);
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1]);
    bytes.resize(56, 0);
    bytes.extend([9, 0, 0, 0, 1, 0, 0, 0]);
    bytes.extend(1_472_u16.to_le_bytes());
    bytes.extend((topics.len() as u16).to_le_bytes());
    bytes.extend((list.len() as u16).to_le_bytes());
    bytes.extend([2, 0]);
    bytes.extend(list);
    bytes
}

fn start(stage: &Stage) -> (Run, SocketAddr) {
    let daemon = stage.start("resolve --listen 127.0.0.1:0");
    daemon.until_out("\n");
    let line = daemon.out();
    let address = line.trim_end().strip_prefix("resolver listening on ").expect("the ready line");
    let address = address.parse().expect("an address");
    (daemon, address)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    stream
}

fn resident_kib(daemon: &Run) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("alive");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its size");
    line.split_whitespace().nth(1).expect("a number").parse().expect("a number")
}

#[test]
fn it_says_where_it_listens_counts_and_ends_in_order() {
    for signal in ["INT", "TERM"] {
        let stage = Stage::new();
        let (daemon, address) = start(&stage);
        let mut client = connect(address);
        client.write_all(&frame(QUERY, 0, 5, &names(&["a".into()]))).expect("room");
        wait_for("its counters", || {
            let stat = stage.run("stat --json --filter frames").good();
            stat.contains(r#""label":"frames received","value":1"#).then_some(())
        });
        daemon.signal(signal);
        let done = daemon.finish();
        assert_eq!(done.good().lines().count(), 1);
        assert!(done.err.contains("resolver ended: 1 client, 0 topics"), "{}", done.err);
        assert!(stage.run("stat").good().starts_with("no process has counters in "));
    }
}

#[test]
fn it_listens_to_this_host_alone_unless_told_otherwise() {
    let stage = Stage::new();
    for address in ["0.0.0.0", "[::]:7331", "192.0.2.1:7331"] {
        let done = stage.run(&format!("resolve --listen {address}"));
        assert!(done.refused(2).contains("--allow-remote"), "{}", done.err);
    }
    let done = stage.run("resolve --listen 192.0.2.1:7331 --allow-remote");
    assert!(done.refused(1).contains("address of this host"), "{}", done.err);
    assert!(stage.run("resolve --listen somewhere").refused(2).contains("10.0.0.1:7331"));
    let (_daemon, address) = start(&stage);
    let done = stage.run(&format!("resolve --listen {address}"));
    assert!(done.refused(1).contains("take a free port"), "{}", done.err);
}

#[test]
fn nonsense_and_those_who_never_read_cost_little_and_stop_nobody() {
    let stage = Stage::new();
    let (daemon, address) = start(&stage);
    let mut publisher = connect(address);
    let topics: Vec<String> = (0..20).map(|number| format!("{number:0>200}")).collect();
    for session in 1..200 {
        publisher.write_all(&frame(ADVERT, 0, 5, &entry(session, &topics))).expect("room");
    }
    // The answers to these would be a hundred times what the daemon may take.
    let mut deaf = connect(address);
    for resolver in [6; 2_000] {
        deaf.write_all(&frame(QUERY, ALL, resolver, &[])).expect("the daemon reads");
    }
    for seed in 0..50_u32 {
        let noise = (seed..seed + 5_000).map(|it| (it.wrapping_mul(it) >> 5) as u8);
        let noise: Vec<u8> = noise.collect();
        // It may have hung up already.
        let _ = connect(address).write_all(&noise);
    }
    daemon.until_err("no valid frame for a resolver daemon");
    let mut reader = connect(address);
    reader.write_all(&frame(QUERY, 0, 7, &names(&topics[..1]))).expect("room");
    let mut answer = [0; 100];
    reader.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer[3], ADVERT);
    let resident = resident_kib(&daemon);
    assert!(resident < 64 << 10, "{resident} KiB");
    daemon.signal("TERM");
    daemon.finish().good();
}
