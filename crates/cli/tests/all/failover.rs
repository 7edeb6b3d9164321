//! `lanecast sub --failover`: two publishers of the same lines, one of which is killed.

use crate::run::{Run, Stage};

/// Lines that both publish.
const LINES: usize = 4_000;

/// A command on a network of this test's own.
fn start(stage: &Stage, line: &str) -> Run {
    let run = std::process::id();
    let group = |port| format!("239.197.{}.{}:{port}", run >> 8 & 0xff, run & 0xff);
    let mut command = stage.lanecast(line);
    command.stdin(std::process::Stdio::piped());
    command.env("LANECAST_NET__RESOLVER_GROUP", group(32_100));
    command.env("LANECAST_NET__GROUP", group(32_101));
    Run::start(command)
}

#[test]
fn a_killed_publisher_costs_neither_a_gap_nor_a_duplicate() {
    for way in ["ru", "shm"] {
        let stage = Stage::new();
        let lines: String = (0..LINES).map(|number| format!("line {number}\n")).collect();
        let start = |line: &str| start(&stage, &format!("{line} --transports {way}"));
        let subscriber = start(&format!("sub prices --failover --count {LINES}"));
        let publish = |rate: u32| format!("pub prices --wait-subscribers 1 --rate {rate}");
        let (mut first, mut second) = (start(&publish(20_000)), start(&publish(4_000)));
        // Its input stays open: it lives until it is killed.
        first.feed(&lines[..lines.len() / 2]);
        second.feed(&lines);
        subscriber.until_out("line 400\n");
        // One that joins after the end of the other begins a stream of its own.
        second.until_err(" joined");
        first.signal("KILL");
        second.end_input();
        let received = subscriber.finish();
        assert!(received.good() == lines, "{way}: not each line once and in order");
        second.finish().good();
    }
}
