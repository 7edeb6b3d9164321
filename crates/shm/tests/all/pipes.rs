//! The named pipe by which publishers of other processes make a subscriber's descriptor readable.

use lanecast_os::event::wait_readable;
use lanecast_os::refusal::without_barriers;
use lanecast_os::{make_pipe, open_pipe};
use lanecast_shm::{Domain, DomainSettings, Publisher, Subscriber, clean};
use lanecast_transport::{Event, Publish, Subscribe, Transport};
use lanecast_wire::shm::{GATE_LIVE_OFFSET, GateLive};
use std::fs::File;
use std::io::Read;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);

/// Both ends in this process, which join as those of two processes do.
fn open(directory: &Path) -> Domain {
    open_joining(directory, false)
}

fn open_joining(directory: &Path, local_join: bool) -> Domain {
    let directory = directory.to_owned();
    let window_bytes = 64 << 10;
    Domain::open(DomainSettings { directory, local_join, window_bytes, ..Default::default() })
        .expect("a domain")
}

/// Another process withdraws all announcements of a kind: writes zeroes at `offset` of the gate.
fn withdraw(directory: &Path, publisher: &Publisher, offset: usize, bytes: &[u8]) {
    let gate = directory.join(format!("{}.gate", publisher.session()));
    let gate = File::options().write(true).open(gate).expect("a gate");
    gate.write_all_at(bytes, (GATE_LIVE_OFFSET + offset) as u64).expect("written");
}

fn pipes(directory: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(directory).expect("a directory");
    let paths = paths.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|kind| kind == "pipe")).collect()
}

/// A publisher, and a subscriber that has joined it, by its descriptor alone.
fn pair(domain: &Domain) -> (Publisher, Subscriber) {
    let publisher = domain.publisher("t").expect("a publisher");
    let mut subscriber = domain.subscriber(&["t"]).expect("a subscriber");
    subscriber.wakeup().expect("a descriptor");
    while subscriber.streams() == 0 {
        assert!(is_woken(&mut subscriber, LONG), "a session was found");
        take(&mut subscriber);
    }
    while take(&mut subscriber) > 0 {}
    (publisher, subscriber)
}

fn is_woken(subscriber: &mut Subscriber, limit: Duration) -> bool {
    wait_readable([subscriber.wakeup().expect("a descriptor")], Some(limit))[0]
}

/// Number of messages of one poll.
fn take(subscriber: &mut Subscriber) -> usize {
    let mut messages = 0;
    subscriber.poll(64, |event| messages += usize::from(matches!(event, Event::Message(_))));
    messages
}

/// Sleeps on the descriptor until there is a message.
fn sleep_and_take(subscriber: &mut Subscriber) {
    let deadline = Instant::now() + LONG;
    while take(subscriber) == 0 {
        assert!(is_woken(subscriber, deadline.saturating_duration_since(Instant::now())));
    }
}

#[test]
fn each_message_wakes_a_descriptor_that_sleeps() {
    let directory = tempfile::tempdir().expect("a directory");
    let domain = open(directory.path());
    let (mut publisher, mut subscriber) = pair(&domain);
    assert_eq!(pipes(directory.path()).len(), 1);
    for _ in 0..1_000 {
        std::thread::scope(|scope| {
            scope.spawn(|| publisher.send(b"now").expect("room"));
            sleep_and_take(&mut subscriber);
        });
    }
    drop(subscriber);
    assert!(pipes(directory.path()).is_empty(), "the pipe goes with its subscriber");
    // The slot's pipe is gone, and so is its subscriber.
    publisher.send(b"later").expect("room");
}

/// A signal that comes after the descriptor was armed again, or from a stranger.
#[test]
fn a_signal_without_a_message_does_not_leave_the_descriptor_readable() {
    let directory = tempfile::tempdir().expect("a directory");
    let domain = open(directory.path());
    let (mut publisher, mut subscriber) = pair(&domain);
    while take(&mut subscriber) > 0 || is_woken(&mut subscriber, Duration::ZERO) {}
    let mut stranger = open_pipe(&pipes(directory.path())[0]).expect("a pipe");
    std::io::Write::write_all(&mut stranger, &[1; 8]).expect("written");
    assert!(is_woken(&mut subscriber, Duration::ZERO));
    assert_eq!(take(&mut subscriber), 0);
    assert!(!is_woken(&mut subscriber, Duration::ZERO), "armed again");
    std::thread::scope(|scope| {
        scope.spawn(|| publisher.send(b"now").expect("room"));
        assert!(is_woken(&mut subscriber, LONG));
    });
    assert_eq!(take(&mut subscriber), 1);
}

/// Signals make a descriptor readable, and wake no sleeper on a futex word.
#[test]
fn a_subscriber_with_a_descriptor_is_woken_out_of_its_own_sleep() {
    let directory = tempfile::tempdir().expect("a directory");
    let domain = open(directory.path());
    let (mut publisher, mut subscriber) = pair(&domain);
    for _ in 0..1_000 {
        std::thread::scope(|scope| {
            scope.spawn(|| publisher.send(b"now").expect("room"));
            while take(&mut subscriber) == 0 {
                subscriber.sleep(LONG);
            }
        });
    }
}

#[test]
fn a_removed_pipe_leaves_the_wake_up_thread() {
    let directory = tempfile::tempdir().expect("a directory");
    let domain = open(directory.path());
    let (mut publisher, mut subscriber) = pair(&domain);
    for pipe in pipes(directory.path()) {
        std::fs::remove_file(pipe).expect("removed");
    }
    for _ in 0..100 {
        std::thread::scope(|scope| {
            scope.spawn(|| publisher.send(b"now").expect("room"));
            sleep_and_take(&mut subscriber);
        });
    }
}

#[test]
fn pipes_of_dead_subscribers_are_removed_and_those_of_others_are_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let domain = open(directory.path());
    let (_publisher, _subscriber) = pair(&domain);
    let alive = pipes(directory.path());
    let dead = ["0123456789abcdef.pipe", "0123456789abcdef.newpipe"];
    let dead = dead.map(|name| directory.path().join(name));
    for path in &dead {
        drop(make_pipe(path, 0o600).expect("a pipe"));
    }
    let found = clean(directory.path(), false).expect("cleaned");
    let mut found: Vec<_> = found.into_iter().map(|file| (file.path, file.error)).collect();
    found.sort();
    assert_eq!(found, [(dead[1].clone(), None), (dead[0].clone(), None)]);
    assert_eq!(pipes(directory.path()), alive);
    drop(make_pipe(&dead[0], 0o600).expect("a pipe"));
    let _other = open(directory.path());
    assert_eq!(pipes(directory.path()), alive, "opening a domain cleans up, too");
}

#[test]
fn a_subscriber_whose_announcement_was_withdrawn_is_woken() {
    for local_join in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let domain = open_joining(directory.path(), local_join);
        let (mut publisher, mut subscriber) = pair(&domain);
        while take(&mut subscriber) > 0 || is_woken(&mut subscriber, Duration::ZERO) {}
        withdraw(directory.path(), &publisher, offset_of!(GateLive, sleepers), &[0; 8]);
        publisher.send(b"now").expect("room");
        assert!(is_woken(&mut subscriber, LONG), "{local_join}");
        assert_eq!(take(&mut subscriber), 1);
    }
}

#[test]
fn a_subscriber_whose_pipe_was_emptied_is_woken() {
    for local_join in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let domain = open_joining(directory.path(), local_join);
        let (mut publisher, mut subscriber) = pair(&domain);
        let mut stranger = open_pipe(&pipes(directory.path())[0]).expect("a pipe");
        for _ in 0..10 {
            while take(&mut subscriber) > 0 || is_woken(&mut subscriber, Duration::ZERO) {}
            publisher.send(b"now").expect("room");
            assert!(stranger.read(&mut [0; 64]).expect("a signal") > 0);
            assert!(is_woken(&mut subscriber, LONG), "{local_join}");
            assert_eq!(take(&mut subscriber), 1);
        }
    }
}

#[test]
fn a_publisher_whose_announcement_was_withdrawn_is_woken() {
    let directory = tempfile::tempdir().expect("a directory");
    let domain = open(directory.path());
    let (mut publisher, mut subscriber) = pair(&domain);
    publisher.wakeup().expect("a descriptor");
    while publisher.try_send(&[1; 1_000]).is_ok() {}
    let bytes = [0; size_of::<u32>()];
    withdraw(directory.path(), &publisher, offset_of!(GateLive, publisher_waits), &bytes);
    while take(&mut subscriber) > 0 {}
    assert!(wait_readable([publisher.wakeup().expect("a descriptor")], Some(LONG))[0]);
    publisher.try_send(b"now").expect("room");
}

/// The system refuses barriers after the process has registered for them: messages can come
/// unnoticed, and the subscriber is woken to look for them.
#[test]
fn a_subscriber_without_barriers_is_woken_to_look() {
    let directory = tempfile::tempdir().expect("a directory");
    let domain = open(directory.path());
    let (mut publisher, mut subscriber) = pair(&domain);
    without_barriers(move || {
        publisher.send(b"now").expect("room");
        sleep_and_take(&mut subscriber);
        for _ in 0..3 {
            assert_eq!(take(&mut subscriber), 0);
            assert!(is_woken(&mut subscriber, LONG));
        }
        publisher.wakeup().expect("a descriptor");
        while publisher.try_send(&[1; 1_000]).is_ok() {}
        for _ in 0..3 {
            assert!(wait_readable([publisher.wakeup().expect("a descriptor")], Some(LONG))[0]);
            publisher.try_send(&[1; 1_000]).expect_err("nothing was read");
        }
    });
}
