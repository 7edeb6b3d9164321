//! `lanecast store` on disks that are full, or that fail: it says so, and the others go on; and its
//! limit of open files.

use crate::run::{BINARY, Run, Stage, wait_for};
use lanecast::{Context, PersistentPublisher};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Segments of 2 MiB: a disk of 5 MiB has room for two, and no more.
const LIMIT: &str = "--keep 16MiB";

/// A store that is run by a shell, which does `before` first.
fn shell(stage: &Stage, program: &[&str], before: &str, data: &str) -> Run {
    let script = format!("{before} exec {BINARY} store a --data {data} {LIMIT}");
    let mut command = stage.command(program[0]);
    command.args(&program[1..]).args(["-c", &script]);
    let store = Run::start(command);
    store.until_out("store a in ");
    store
}

fn others(stage: &Stage) -> [Run; 2] {
    ["b", "c"].map(|name| {
        let store = stage.start(&format!("store {name} --data {name}.data {LIMIT}"));
        store.until_out("store ");
        store
    })
}

fn publisher(stage: &Stage) -> PersistentPublisher {
    let context = Context::builder().set("shm.directory", stage.path("domain").display());
    let context = context.unwrap().build().unwrap();
    context.topic("orders").persistent(7).stores(["a", "b", "c"]).publisher().unwrap()
}

/// Sends messages, and calls `is_done` between them, until it says so.
fn send_until(
    publisher: &mut PersistentPublisher,
    what: &str,
    is_done: impl Fn(&PersistentPublisher) -> bool,
) {
    wait_for(what, || {
        for _ in 0..16 {
            // Refused before the registration, and when too many are not stable.
            if publisher.try_send(&[7; 10_000]).is_err() {
                break;
            }
        }
        publisher.poll(|_| {});
        is_done(publisher).then_some(())
    });
}

/// Sends until 100 more messages are stable.
fn send(publisher: &mut PersistentPublisher) {
    let until = publisher.stable() + 100;
    send_until(publisher, "stable messages", |it| it.stable() >= until);
}

#[test]
fn a_store_on_a_full_disk_says_so_and_copies_what_it_missed_when_there_is_space() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("disk")).unwrap();
    if !lanecast_system_tests::possible() {
        return;
    }
    // The disk is gone with the mount namespace, and the loop with the directory.
    let before = "mount -t tmpfs -o size=5m none disk || exit; (until [ -e grow ]; do \
                  [ -d disk ] || exit; sleep 0.05; done; mount -o remount,size=100m none disk) &";
    let store = shell(&stage, &["unshare", "-m", "sh"], before, "disk/a");
    let others = others(&stage);
    let mut publisher = publisher(&stage);
    let full = "the disk is full: nothing is kept until there is space";
    send_until(&mut publisher, "a full disk", |_| store.err().contains(full));
    send(&mut publisher);
    assert!(!store.err().contains("has space"), "{}", store.err());
    stage.write("grow", "");
    wait_for("space", || {
        publisher.poll(|_| {});
        store.err().contains("the disk has space again").then_some(())
    });
    send(&mut publisher);
    wait_for("everything at the store that was full", || {
        publisher.poll(|_| {});
        // It may begin later than at 0: all have limits.
        let end = format!("..{}", publisher.next());
        let is_all = |it: &str| it.starts_with("orders of publisher 7: ") && it.ends_with(&end);
        store.out().lines().any(is_all).then_some(())
    });
    for store in others.into_iter().chain([store]) {
        store.signal("TERM");
        store.finish().good();
    }
}

/// A limit for its files, which the next write exceeds, stands for a disk that fails.
#[test]
fn a_store_whose_disk_fails_ends_with_an_error_and_the_others_go_on() {
    let stage = Stage::new();
    let store = shell(&stage, &["sh"], "trap '' XFSZ;", "a.data");
    let others = others(&stage);
    let mut publisher = publisher(&stage);
    send(&mut publisher);
    let pid = store.pid().to_string();
    let limited = Command::new("prlimit").args(["--pid", &pid, "--fsize=4096"]).status();
    assert!(limited.expect("prlimit, of util-linux").success());
    // Messages that it has missed are sent again only while the publisher is polled.
    let has_failed = |_: &_| store.err().contains("File too large");
    send_until(&mut publisher, "the error of the store", has_failed);
    let done = store.finish();
    let error = done.refused(1);
    assert!(error.contains("a.data") && error.contains("File too large"), "{error}");
    send(&mut publisher);
    for store in others {
        store.signal("TERM");
        store.finish().good();
    }
}

/// Each topic takes a store some descriptors.
#[test]
fn a_store_raises_its_limit_of_open_files() {
    let stage = Stage::new();
    let store = shell(&stage, &["sh"], "ulimit -Sn 64;", "a.data");
    let limits = Path::new("/proc").join(store.pid().to_string()).join("limits");
    let limits = fs::read_to_string(limits).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let files: Vec<&str> = files.split_whitespace().collect();
    assert_eq!(files[3], files[4], "the limit is raised");
    store.signal("TERM");
    store.finish().good();
}
