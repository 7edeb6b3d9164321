//! Inspection of a domain changes nothing in it.
#![cfg(target_os = "linux")]

use lanecast_base::WaitStrategy;
use lanecast_shm::{Domain, DomainSettings, DomainSnapshot, inspect};
use lanecast_transport::{Publish, Transport};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);
const WINDOW: u64 = 64 << 10;
const LOOKS: usize = 200;

fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(directory).expect("the directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.map(|path| (path.clone(), std::fs::read(path).expect("a file"))).collect()
}

#[test]
fn looking_costs_the_watched_nothing() {
    a_look_maps_no_messages();
    a_look_changes_no_byte();
}

fn a_look_changes_no_byte() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("domain");
    let settings = DomainSettings {
        directory: directory.clone(),
        window_bytes: WINDOW,
        subscriber_wait: WaitStrategy::Park,
        ..DomainSettings::default()
    };
    let domain = Domain::open(settings).expect("a domain");
    let mut publisher = domain.publisher("x").expect("a publisher");
    let _feed = domain.subscriber(&["x"]).expect("a subscriber");
    assert!(publisher.wait_for_subscribers(1, LONG));
    publisher.send(b"unread").expect("room");
    let second = publisher.add_topic("y").expect("a topic");
    publisher.send_on(second, b"unread").expect("room");

    // Joining ends with a counter: from then on only the publisher writes.
    let start = Instant::now();
    let counted = |look: &lanecast_stats::StatsSnapshot| look.reports[0].counters[0].value == 1;
    while !counted(&lanecast_stats::StatsSnapshot::take(&directory).expect("a look")) {
        assert!(start.elapsed() < LONG, "waited in vain for the count of sessions joined");
        std::thread::sleep(Duration::from_millis(1));
    }

    let before = contents(&directory);
    assert_eq!(before.len(), 3, "a ring, a gate, and counters: {:?}", before.keys());
    for _ in 0..LOOKS {
        let look = DomainSnapshot::take(&directory).expect("a look");
        assert_eq!((look.sessions.len(), look.unreadable.len()), (1, 0));
        assert_eq!(look.sessions[0].messages, 2, "of both topics");
        assert_eq!(look.sessions[0].subscribers.len(), 1);
        assert!(look.sessions[0].subscribers[0].lag_bytes > 0);
        assert_eq!(
            lanecast_stats::StatsSnapshot::take(&directory).expect("a look").reports.len(),
            1
        );
    }
    assert!(before == contents(&directory), "looking wrote something");

    publisher.send(b"seen").expect("room");
    assert!(before != contents(&directory), "the comparison would notice a change");
}

/// Peak size of this process's address space, in kilobytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// In one test with the other check: a parallel test would change the address space as well.
fn a_look_maps_no_messages() {
    let parent = tempfile::tempdir().expect("a directory");
    let directory = parent.path().join("domain");
    let settings = DomainSettings {
        directory: directory.clone(),
        window_bytes: 64 << 20,
        ..DomainSettings::default()
    };
    let domain = Domain::open(settings).expect("a domain");
    let _publisher = domain.publisher("x").expect("a publisher");
    let before = peak();
    assert_eq!(inspect(&directory).expect("a look").len(), 1);
    let grown = peak() - before;
    assert!(grown < 32 << 10, "{grown} kB for a window of 64 MiB");
}
