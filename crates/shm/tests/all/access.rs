//! Permissions of a session's files, mappings of a subscriber, and system calls avoided.
#![cfg(target_os = "linux")]

use lanecast_base::WaitStrategy;
use lanecast_os::Access;
use lanecast_shm::{Domain, DomainSettings, Publisher, inspect};
use lanecast_transport::{Event, Publish, Subscribe, Transport};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);
const MESSAGES: u64 = 10_000;

fn domain(parent: &Path, access: Access) -> Domain {
    let directory = parent.join(format!("{access:?}"));
    let wait = WaitStrategy::BusySpin;
    let settings = DomainSettings {
        directory,
        access,
        subscriber_wait: wait,
        local_join: false,
        ..DomainSettings::default()
    };
    Domain::open(settings).expect("a domain")
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("a file").permissions().mode() & 0o7777
}

/// The modes of the directory's files whose names end in `kind`.
fn modes(directory: &Path, kind: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|e| e == kind)).map(|p| mode(&p)).collect()
}

#[test]
fn by_default_the_owner_alone_has_access() {
    let parent = tempfile::tempdir().expect("a directory");
    let domain = domain(parent.path(), Access::Owner);
    let _publisher = domain.publisher("x").expect("a publisher");
    let directory = &domain.settings().directory;
    assert_eq!(mode(directory), 0o700);
    for kind in ["ring", "gate", "stats"] {
        assert_eq!(modes(directory, kind), [0o600], "{kind}");
    }
}

#[test]
fn a_group_reads_messages_and_writes_only_the_gate() {
    let parent = tempfile::tempdir().expect("a directory");
    let domain = domain(parent.path(), Access::Group);
    let _publisher = domain.publisher("x").expect("a publisher");
    let directory = &domain.settings().directory;
    assert_eq!(mode(directory), 0o3770, "set-group-id and sticky");
    assert_eq!(modes(directory, "ring"), [0o640]);
    assert_eq!(modes(directory, "gate"), [0o660]);
    assert_eq!(modes(directory, "stats"), [0o640]);
}

/// Number of this process's mappings of the publisher's ring file: writable, and read-only.
fn mappings(domain: &Domain, publisher: &Publisher) -> (usize, usize) {
    let name = format!("{:016x}.ring", publisher.session().0);
    let ring = domain.settings().directory.join(name);
    let inode = std::fs::metadata(ring).expect("the ring").ino().to_string();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the mappings");
    let count = |rights| {
        let of_ring = |line: &&str| {
            let mut fields = line.split_whitespace().skip(1);
            fields.next() == Some(rights) && fields.nth(2) == Some(&inode)
        };
        maps.lines().filter(of_ring).count()
    };
    (count("rw-s"), count("r--s"))
}

#[test]
fn subscribers_map_the_messages_for_reading_only() {
    let parent = tempfile::tempdir().expect("a directory");
    let domain = domain(parent.path(), Access::Owner);
    let mut publisher = domain.publisher("x").expect("a publisher");
    // The head and both copies of the ring; neighbouring copies are never merged into one.
    assert_eq!(mappings(&domain, &publisher), (3, 0));
    let _feed = domain.subscriber(&["x"]).expect("a subscriber");
    assert!(publisher.wait_for_subscribers(1, LONG));
    assert_eq!(mappings(&domain, &publisher), (3, 3));
}

#[test]
fn awake_subscribers_cost_no_wake_ups() {
    let parent = tempfile::tempdir().expect("a directory");
    let domain = domain(parent.path(), Access::Owner);
    let mut publisher = domain.publisher("x").expect("a publisher");
    let mut feed = domain.subscriber(&["x"]).expect("a subscriber");
    assert!(publisher.wait_for_subscribers(1, LONG));
    for number in 0..MESSAGES {
        publisher.send(&number.to_le_bytes()).expect("room");
    }
    let (mut received, start) = (0, Instant::now());
    while received < MESSAGES && start.elapsed() < LONG {
        let work = feed.poll(16, |event| {
            received += u64::from(matches!(event, Event::Message(_)));
        });
        feed.wait(work);
    }
    let reports = inspect(&domain.settings().directory).expect("a directory");
    let report = reports.into_iter().next().expect("a session").expect("readable");
    assert_eq!((received, report.messages, report.wakes), (MESSAGES, MESSAGES, 0));
    assert_eq!(report.subscribers[0].sleeps, 0);
}
