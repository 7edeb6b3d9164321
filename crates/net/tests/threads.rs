//! The threads in the background, and their CPUs. A program by itself: it counts its own threads.

use lanecast_net::{NetSettings, Network, OpenError, ThreadingMode};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

fn settings(threading: ThreadingMode, cpus: &[usize]) -> NetSettings {
    NetSettings { resolver_group: None, threading, cpus: cpus.to_vec(), ..NetSettings::default() }
}

/// This process's threads in the background, and which CPUs each may use.
fn threads() -> BTreeMap<String, String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("this process");
    let of = |task: std::fs::DirEntry| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let status = std::fs::read_to_string(task.path().join("status")).ok()?;
        let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some((name.trim().to_owned(), cpus.trim().to_owned()))
    };
    let all = tasks.filter_map(|task| of(task.ok()?));
    all.filter(|(name, _)| name.starts_with("lanecast-")).collect()
}

/// Waits until the threads are these: the kernel lists a thread for a moment after it was joined.
#[track_caller]
fn await_threads(expected: &BTreeMap<String, String>) {
    let start = Instant::now();
    loop {
        let found = threads();
        if found == *expected {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{found:?}, not {expected:?}");
        std::thread::yield_now();
    }
}

/// One test, since it looks at all threads of the process.
#[test]
fn they_are_as_many_as_asked_for_and_where() {
    let cpus = lanecast_os::affinity::allowed().expect("the CPUs");
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    let named = |names: &[(&str, usize)]| -> BTreeMap<String, String> {
        names.iter().map(|(name, cpu)| ((*name).to_owned(), cpu.to_string())).collect()
    };
    let network = Network::open(settings(ThreadingMode::Thread, &[last])).expect("a network");
    await_threads(&named(&[("lanecast-net", last)]));
    drop(network);
    let network = Network::open(settings(ThreadingMode::Split, &[first, last])).expect("a network");
    await_threads(&named(&[("lanecast-recv", first), ("lanecast-send", last)]));
    drop(network);
    let network = Network::open(settings(ThreadingMode::Split, &[first])).expect("a network");
    await_threads(&named(&[("lanecast-recv", first), ("lanecast-send", first)]));
    drop(network);
    let refused =
        Network::open(settings(ThreadingMode::Caller, &[9_999])).expect_err("no such CPU");
    assert!(refused.to_string().contains("CPU 9999 is not there"), "{refused}");
    let refused = Network::open(settings(ThreadingMode::Thread, &[0, 0])).expect_err("one thread");
    assert!(matches!(refused, OpenError::Setting { what: "net.cpus", .. }), "{refused}");
    let receiving = |threading, receive_threads, cpus: &[usize]| {
        Network::open(NetSettings { receive_threads, ..settings(threading, cpus) })
    };
    let network = receiving(ThreadingMode::Caller, 2, &[first, last, first]).expect("a network");
    let named_three =
        named(&[("lanecast-net", first), ("lanecast-recv1", last), ("lanecast-recv2", first)]);
    await_threads(&named_three);
    drop(network);
    // A CPU of a receive thread that is not there refuses the context, and ends its threads.
    let refused = receiving(ThreadingMode::Caller, 2, &[first, last, 9_999]).expect_err("no CPU");
    assert!(refused.to_string().contains("CPU 9999 is not there"), "{refused}");
    for (count, cpus, setting) in
        [(2, &[first; 4][..], "net.cpus"), (17, &[][..], "net.receive_threads")]
    {
        let refused = receiving(ThreadingMode::Caller, count, cpus).expect_err(setting);
        let is_named = matches!(refused, OpenError::Setting { what, .. } if what == setting);
        assert!(is_named, "{refused}");
    }
    await_threads(&BTreeMap::new());
}
