//! The descriptor of a publisher over memory and network, whose two parts refuse claims one by one.

use lanecast::prelude::*;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
/// Length of most messages, and its bytes in memory.
const SHORT: usize = 500;
const SHORT_FRAME: usize = 520;
/// A length for which memory has no room when it still has some for a short one.
const LONG: usize = 8_000;

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
    }
}

fn context(directory: &TempDir, transports: &str, domain: &str) -> Context {
    let run = std::process::id() as u16;
    let group = |port: u16| format!("239.197.{}.{}:{port}", run >> 8, run & 0xff);
    let settings = [
        ("transports", transports.to_owned()),
        ("shm.directory", directory.path().join(domain).display().to_string()),
        ("shm.window", "128KiB".into()),
        ("net.window", "64KiB".into()),
        ("net.liveness", "20s".into()),
        ("net.resolver_group", group(24_301)),
        ("net.group", group(24_302)),
    ];
    let builder = settings.iter().try_fold(Context::builder(), |b, (k, v)| b.set(k, v));
    builder.expect("settings").build().expect("a context")
}

/// Whether the publisher's descriptor is readable; that it is not is seen after a while.
fn is_woken(set: &mut WaitSet) -> bool {
    !set.wait(Some(Duration::from_millis(20))).expect("a wait").is_empty()
}

/// The network has room again for a claim that it refused, and memory refuses the next one: a loop
/// that claims each time it is woken sleeps.
#[test]
fn a_loop_sleeps_while_either_part_is_full() {
    let directory = TempDir::new_in("/dev/shm").expect("a directory");
    let here = context(&directory, "shm+ru", "near");
    let elsewhere = context(&directory, "ru", "far");
    let mut publisher = here.publisher("a").expect("a publisher");
    let mut near = here.subscriber("a").expect("a subscriber");
    let mut far = elsewhere.subscriber("a").expect("a subscriber");
    let mut set = WaitSet::new().expect("a set");
    set.add(0, publisher.wakeup().expect("a descriptor")).expect("added");
    until("both have joined", || {
        near.poll(64, |_| {});
        far.poll(64, |_| {});
        let _ = publisher.wait_for_subscribers(2, Duration::from_millis(1));
        publisher.subscribers() == 2
    });
    let mut came = 0;
    let mut read_far = |far: &mut Subscriber, count: usize| {
        until("what was sent", || {
            far.poll(64, |event| came += usize::from(matches!(event, Event::Message(_))));
            came == count
        });
    };
    // Memory has 128 KiB, of which the network keeps the last half at most.
    let mut sent = 0;
    while sent < 126 {
        publisher.send(&[0; SHORT]).expect("room");
        sent += 1;
        read_far(&mut far, sent);
    }
    until("a full network", || match publisher.try_send(&[0; SHORT]) {
        Ok(()) => {
            sent += 1;
            false
        }
        Err(_) => !is_woken(&mut set),
    });
    let left = (128 << 10) - sent * SHORT_FRAME;
    assert!((2 * SHORT_FRAME..LONG).contains(&left), "{sent} sent");
    read_far(&mut far, sent);
    until("room in the network", || {
        far.poll(64, |_| {});
        is_woken(&mut set)
    });
    until("a claim that is refused with the descriptor unreadable", || {
        assert!(publisher.try_send(&[0; LONG]).is_err(), "memory is full");
        !is_woken(&mut set)
    });
    until("room in memory", || {
        near.poll(64, |_| {});
        far.poll(64, |_| {});
        is_woken(&mut set) && publisher.try_send(&[0; LONG]).is_ok()
    });
    assert!(!is_woken(&mut set), "nothing is refused");
}
