//! CPUs and waiting of the measuring threads, as the kernel reports them: a printed option alone
//! does not prove them.

use crate::run::{Run, Stage, wait_for};
use std::path::PathBuf;

/// A thread of another process, as `/proc` shows it.
#[derive(Debug)]
struct Thread {
    id: u32,
    name: String,
    cpus: String,
    /// Number of times the thread slept.
    slept: u64,
    /// CPU time, in ticks of the kernel.
    ticks: u64,
}

/// The threads of a process that are there now; those that end meanwhile are left out.
fn threads(run: &Run) -> Vec<Thread> {
    let folder = PathBuf::from(format!("/proc/{}/task", run.pid()));
    let Ok(found) = std::fs::read_dir(folder) else { return Vec::new() };
    found.filter_map(|entry| thread(&entry.ok()?.path())).collect()
}

fn thread(folder: &std::path::Path) -> Option<Thread> {
    let status = std::fs::read_to_string(folder.join("status")).ok()?;
    let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    // The name, in brackets, may have blanks; user time is the 14th field, system time the next.
    let after = stat.rsplit_once(')')?.1.split_whitespace();
    let ticks = after.skip(11).take(2).map(|ticks| ticks.parse::<u64>().ok()).sum::<Option<u64>>();
    Some(Thread {
        id: folder.file_name()?.to_str()?.parse().ok()?,
        name: field("Name:")?,
        cpus: field("Cpus_allowed_list:")?,
        slept: field("voluntary_ctxt_switches:")?.parse().ok()?,
        ticks: ticks?,
    })
}

/// The thread that the program began with, or one by name.
fn find(run: &Run, name: &str) -> Option<Thread> {
    let is_it =
        |it: &Thread| if name == "main" { it.id == run.pid() } else { it.name.starts_with(name) };
    threads(run).into_iter().find(is_it)
}

fn until_on(run: &Run, name: &str, cpu: usize) {
    wait_for(&format!("'{name}' on CPU {cpu}, of {:?}", threads(run)), || {
        find(run, name).filter(|thread| thread.cpus == cpu.to_string())
    });
}

/// The first and the last CPU that this process may use, both ways round; none if it has only one,
/// where every thread is in its place.
fn pairs() -> Vec<(usize, usize)> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list:")).unwrap();
    let list = line.split_once(':').unwrap().1.trim();
    let number = |text: Option<&str>| text.unwrap().parse::<usize>().unwrap();
    let [first, last] =
        [number(list.split([',', '-']).next()), number(list.rsplit([',', '-']).next())];
    if first == last { Vec::new() } else { vec![(first, last), (last, first)] }
}

#[test]
fn round_trips_run_on_the_cpus_that_were_asked_for() {
    for (one, other) in pairs() {
        let stage = Stage::new();
        for (thread, letter) in [("main", ""), ("receiver", "-R x")] {
            let pong = stage.start(&format!("perf pong -a {other} {letter}"));
            let ping = stage.start(&format!(
                "perf ping -A {one} -a {other} {letter} --wait park -n 10000000 -r 100 -w 1,100"
            ));
            until_on(&pong, thread, other);
            until_on(&ping, "main", one);
            until_on(&ping, "receiver", other);
        }
    }
}

#[test]
fn publishers_and_subscribers_run_on_the_cpus_that_were_asked_for() {
    for (one, other) in pairs() {
        let stage = Stage::new();
        let subscriber = stage.start(&format!("perf sub -a {other} --wait park"));
        let publisher =
            stage.start(&format!("perf pub -a {one} --wait-subscribers 1 -r 100 -w 1 -n 10000000"));
        until_on(&publisher, "main", one);
        until_on(&subscriber, "main", other);
    }
}

/// A command that waits by sleeping, unless its arguments say otherwise.
fn parked(stage: &Stage, line: &str) -> Run {
    let mut command = stage.lanecast(line);
    command.stdin(std::process::Stdio::piped());
    command.env("LANECAST_SHM__SUBSCRIBER_WAIT", "park");
    Run::start(command)
}

/// A thread that spins computes for a long time, and meanwhile does not sleep.
fn spins(run: &Run, name: &str) {
    let before = wait_for("a thread at work", || find(run, name).filter(|it| it.ticks >= 10));
    let after = wait_for("a thread that spins", || {
        find(run, name).filter(|it| it.ticks >= before.ticks + 30)
    });
    // Now and then it meets a lock; one that parks sleeps hundreds of times in so long a time.
    assert!(after.slept < before.slept + 10, "{before:?} {after:?}");
}

/// One that parks sleeps again and again, and hardly computes.
fn sleeps(run: &Run, name: &str) {
    let before = wait_for("a thread", || find(run, name).filter(|it| it.slept >= 3));
    let after = wait_for("a thread that sleeps", || {
        find(run, name).filter(|it| it.slept >= before.slept + 20)
    });
    assert!(after.ticks < before.ticks + 30, "{before:?} {after:?}");
}

#[test]
fn receivers_spin_only_if_that_is_asked_for() {
    let stage = Stage::new();
    let pong = parked(&stage, "perf pong -a -1");
    sleeps(&pong, "main");
    drop(pong);
    let pong = parked(&stage, "perf pong -a -1 -s f");
    spins(&pong, "main");
    for (letters, is_busy) in [("", false), ("-s f", true)] {
        let ping = parked(&stage, &format!("perf ping -n 10000000 -r 50 -w 0,0 {letters}"));
        ping.until_out("rcv event BOS");
        if is_busy { spins(&ping, "receiver") } else { sleeps(&ping, "receiver") }
    }
}

#[test]
fn an_extra_receiving_thread_belongs_to_the_context() {
    let stage = Stage::new();
    // A context between hosts has its threads in the background from its beginning.
    let background = |letters: &str| {
        let line = format!("perf pong --transport ru -a -1 {letters}");
        let mut command = stage.lanecast(&line);
        command.env("LANECAST_NET__RESOLVER_GROUP", "none");
        command.env("LANECAST_NET__RESOLVERS", "127.0.0.1:1");
        let pong = Run::start(command);
        pong.until_out("o_affinity_rcv=-1");
        let mut names: Vec<_> = threads(&pong).into_iter().map(|it| it.name).collect();
        names.retain(|name| name.starts_with("lanecast-"));
        names.sort();
        names
    };
    assert_eq!(background(""), ["lanecast-net"]);
    assert_eq!(background("-R x"), ["lanecast-net", "lanecast-recv1"]);
}
