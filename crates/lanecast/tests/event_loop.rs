//! Event loops over descriptors, in a process of their own: its descriptors, threads and CPU time
//! are counted. Other processes are this program with other arguments.
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
/// Variables of a child process: its task, and the directory above its domain.
const TASK: &str = "EVENT_LOOP_TASK";
const DOMAIN: &str = "EVENT_LOOP_DOMAIN";
/// Longest sleep of the idle loop, and the CPU time that the process may take meanwhile: threads
/// beside the loop wake now and then, and a loop that spins takes all of it.
const IDLE: Duration = Duration::from_secs(2);
const IDLE_CPU_MAX: Duration = Duration::from_millis(60);
/// Wake-ups of the idle loop: none is needed, and a loop that spins has thousands.
const IDLE_WAKEUPS_MAX: usize = 20;

fn context(directory: &Path, transports: &str, visibility: &str) -> Context {
    let port = 21_000 + (std::process::id() % 20_000) as u16;
    let settings = [
        ("transports", transports.to_owned()),
        ("shm.directory", directory.join("domain").display().to_string()),
        ("shm.visibility", visibility.to_owned()),
        ("shm.window", "64KiB".into()),
        ("shm.liveness", "1s".into()),
        ("net.window", "64KiB".into()),
        ("net.liveness", "20s".into()),
        ("net.resolver_group", format!("239.193.7.7:{port}")),
        ("net.group", format!("239.193.7.8:{port}")),
    ];
    let builder = settings.iter().try_fold(Context::builder(), |b, (k, v)| b.set(k, v));
    builder.expect("settings").build().expect("a context")
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "timed out waiting for: {what}");
        std::thread::yield_now();
    }
}

/// Open descriptors and threads of this process.
fn resources() -> (usize, usize) {
    let entries = |path| fs::read_dir(path).expect("proc").count();
    (entries("/proc/self/fd"), entries("/proc/self/task"))
}

/// CPU time that the threads of this process have taken so far.
fn cpu_time() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").expect("proc").filter_map(Result::ok);
    let stats = tasks.filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok());
    let times = stats.map(|stat| stat.split(' ').next().and_then(|time| time.parse().ok()));
    times.map(|time| Duration::from_nanos(time.expect("nanoseconds"))).sum()
}

/// Two pairs of ends in one loop: the messages of each arrive, an idle loop sleeps, and all ends
/// leave nothing behind.
fn check_loop(context: &Context) {
    let mut subscribers = ["a", "b"].map(|topic| context.subscriber(topic).expect("a subscriber"));
    let mut publishers = ["a", "b"].map(|topic| context.publisher(topic).expect("a publisher"));
    let mut set = WaitSet::new().expect("a set");
    for (key, end) in (0..).zip(&mut subscribers) {
        set.add(key, end.wakeup().expect("a descriptor")).expect("added");
    }
    for publisher in &mut publishers {
        set.add(9, publisher.wakeup().expect("a descriptor")).expect("added");
        assert!(publisher.wait_for_subscribers(1, PATIENCE));
    }
    let mut messages = [0, 0];
    for round in 1..=20 {
        publishers[round % 2].send(b"to one of them").expect("room");
        while messages.iter().sum::<usize>() < round {
            let ready = set.wait(Some(PATIENCE)).expect("a wait").to_vec();
            assert!(!ready.is_empty(), "slept through a message");
            for key in ready {
                let key = key as usize;
                subscribers[key].poll(64, |event| {
                    messages[key] += usize::from(matches!(event, Event::Message(_)));
                });
            }
        }
    }
    let (start, before) = (Instant::now(), cpu_time());
    let mut wakeups = 0;
    while let Some(left) = IDLE.checked_sub(start.elapsed()) {
        let ready = set.wait(Some(left)).expect("a wait").to_vec();
        wakeups += ready.len();
        for key in ready {
            subscribers[key as usize].poll(64, |event| panic!("nothing happened: {event:?}"));
        }
    }
    let taken = cpu_time().saturating_sub(before);
    assert!(wakeups <= IDLE_WAKEUPS_MAX, "{wakeups} wake-ups of an idle loop");
    println!("{wakeups} wake-ups and {taken:?} of CPU time in {IDLE:?}");
    assert!(taken <= IDLE_CPU_MAX, "{taken:?} of CPU time in {IDLE:?}");
}

/// A child process that runs `task` on the domain until it is killed.
struct Task(Child);

impl Task {
    fn start(task: &str, directory: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["a_task_of_a_child", "--exact"]).env(TASK, task).env(DOMAIN, directory);
        Self(command.stdout(Stdio::null()).spawn().expect("a child"))
    }

    fn kill(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("reaped");
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A subscriber that only sleeps on its descriptor learns that a publisher was killed.
fn check_killed_publisher(context: &Context, directory: &Path) {
    let mut subscriber = context.subscriber("killed").expect("a subscriber");
    let mut set = WaitSet::new().expect("a set");
    set.add(0, subscriber.wakeup().expect("a descriptor")).expect("added");
    let mut child = Task::start("publish", directory);
    let (mut messages, mut left) = (0, None);
    while left.is_none() {
        assert!(!set.wait(Some(PATIENCE)).expect("a wait").is_empty(), "slept through an event");
        let work = subscriber.poll(64, |event| match event {
            Event::Message(_) => messages += 1,
            Event::Left(_, why) => left = Some(why),
            _ => {}
        });
        if work == 0 && messages == 1 {
            child.kill();
            messages += 1;
        }
    }
    assert_eq!((messages, left), (2, Some(CloseReason::Died)));
}

/// A publisher that only sleeps on its descriptor goes on when a subscriber is killed that gates
/// it.
fn check_killed_subscriber(context: &Context, directory: &Path) {
    let mut publisher = context.publisher("gated").expect("a publisher");
    let mut set = WaitSet::new().expect("a set");
    set.add(0, publisher.wakeup().expect("a descriptor")).expect("added");
    let mut child = Task::start("subscribe", directory);
    assert!(publisher.wait_for_subscribers(1, PATIENCE));
    until("a full window", || publisher.try_send(&[0; 500]).is_err());
    assert!(set.wait(Some(Duration::from_millis(200))).expect("a wait").is_empty(), "no progress");
    child.kill();
    until("room", || {
        assert!(!set.wait(Some(PATIENCE)).expect("a wait").is_empty(), "slept through the death");
        publisher.try_send(&[0; 500]).is_ok()
    });
    assert!(set.wait(Some(Duration::ZERO)).expect("a wait").is_empty(), "nothing is refused");
}

#[test]
fn loops_sleep_and_leave_nothing_behind() {
    if std::env::var_os(TASK).is_some() {
        return;
    }
    let directory = TempDir::new_in("/dev/shm").expect("a directory");
    for (transports, visibility) in [
        ("shm", "process"),
        ("shm", "host"),
        ("rm", "host"),
        ("ru", "host"),
        ("tcp", "host"),
        ("shm+ru", "host"),
        ("shm+rm", "host"),
    ] {
        let context = context(directory.path(), transports, visibility);
        // Starts the threads that stay for as long as the context.
        drop(context.subscriber("a").expect("a subscriber"));
        drop(context.publisher("a").expect("a publisher"));
        let before = resources();
        check_loop(&context);
        until("the ends' resources to go", || resources() <= before);
        println!("{transports}, {visibility}: {before:?} descriptors and threads");
    }
    let domain = context(directory.path(), "shm", "host");
    check_killed_publisher(&domain, directory.path());
    check_killed_subscriber(&domain, directory.path());
}

/// The child's side: does nothing as a test.
#[test]
fn a_task_of_a_child() {
    let Ok(task) = std::env::var(TASK) else { return };
    let directory = std::env::var(DOMAIN).expect("a domain");
    let context = context(Path::new(&directory), "shm", "host");
    let start = Instant::now();
    if task == "publish" {
        let mut publisher = context.publisher("killed").expect("a publisher");
        assert!(publisher.wait_for_subscribers(1, PATIENCE));
        publisher.send(b"last words").expect("room");
        std::thread::sleep(PATIENCE.saturating_sub(start.elapsed()));
    } else {
        let _never_polled = context.subscriber("gated").expect("a subscriber");
        std::thread::sleep(PATIENCE);
    }
}
