//! Processes that the system refuses something for a while.

use super::child::Child;
use super::ledger::message;
use super::{PATIENCE, Scene, until};
use lanecast_transport::{Publish, Transport};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use std::collections::BTreeSet;

/// The counter of joins that were put off, over all domains of the scene.
fn put_off(scene: &Scene) -> u64 {
    let files = lanecast_stats::list_files(&scene.path()).expect("the directory");
    let reports = files.iter().filter_map(|path| lanecast_stats::read_file(path).ok());
    let counters = reports.flat_map(|report| report.counters);
    counters.filter(|counter| counter.label == "joins deferred").map(|counter| counter.value).sum()
}

#[test]
fn a_session_is_joined_when_there_are_descriptors_again() {
    let scene = Scene::new();
    let mut subscriber = Child::start(&scene.path(), "subscriber streams=1");
    subscriber.tells("listening");
    let pid = Pid::from_raw(i32::try_from(subscriber.pid()).expect("a number"));
    let open = std::fs::read_dir(format!("/proc/{}/fd", subscriber.pid())).expect("a list");
    let open: BTreeSet<u64> =
        open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    // None is free below this, or one that it had open to read the directory.
    let few = (0..).find(|number| !open.contains(number)).expect("a free number");
    let maximum = getrlimit(Resource::Nofile).maximum;
    let usual = prlimit(pid, Resource::Nofile, Rlimit { current: Some(few), maximum });
    let usual = usual.expect("a lower limit");
    let mut publisher = scene.domain().publisher("t").expect("a publisher");
    until("a join to fail", || put_off(&scene) > 0);
    assert_eq!(publisher.subscribers(), 0);
    prlimit(pid, Resource::Nofile, usual).expect("the old limit");
    assert!(publisher.wait_for_subscribers(1, PATIENCE), "it is tried again");
    publisher.send(&message(0)).expect("room");
    assert!(publisher.close(PATIENCE).is_complete());
    assert_eq!(subscriber.tells("left"), "closed");
    subscriber.ends();
}
