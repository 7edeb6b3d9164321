//! Publisher, subscriber and stores as processes, killed at any moment under load: every message
//! that was told to be stable is handled, and none that was acknowledged comes again.
//!
//! The test executable plays the other processes itself: see [`actor`].

use lanecast_shm::{Domain, DomainSettings, SlowConsumerPolicy};
use lanecast_store::{
    Acknowledgement, DurableOptions, DurableSubscriber, GroupRule, PersistentOptions,
    PersistentPublisher, ReceiverEvent, SourceEvent, StoreGroups, StoreOptions, StoreServer,
};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Environment variables of a process: its role and the directory of all.
const ROLE: &str = "KILLED_STORE_ROLE";
const DIRECTORY: &str = "KILLED_STORE_DIRECTORY";
const STORES: [&str; 3] = ["a", "b", "c"];
const SOURCE: u64 = 7;
const SESSION: u64 = 99;
/// The longest that anything may take.
const PATIENCE: Duration = Duration::from_secs(120);
const NAP: Duration = Duration::from_millis(5);

fn domain(directory: &Path) -> Domain {
    let settings = DomainSettings {
        directory: directory.join("domain"),
        window_bytes: 1 << 20,
        liveness: Duration::from_millis(200),
        slow_consumer: SlowConsumerPolicy::EvictAfter(Duration::from_millis(500)),
        ..DomainSettings::default()
    };
    Domain::open(settings).expect("a domain")
}

fn groups() -> StoreGroups {
    StoreGroups::new(vec![STORES.to_vec()], GroupRule::Any).expect("groups")
}

/// A number that outlives its process.
struct Number(File);

impl Number {
    fn open(directory: &Path, name: &str) -> Self {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        Self(options.open(directory.join(name)).expect("a file"))
    }

    fn get(&self) -> u64 {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, 0).map_or(0, |()| u64::from_le_bytes(bytes))
    }

    fn set(&self, value: u64) {
        self.0.write_all_at(&value.to_le_bytes(), 0).expect("written");
    }
}

/// Body of the other processes, no test of its own.
#[test]
fn actor() {
    let (Some(role), Some(directory)) = (std::env::var_os(ROLE), std::env::var_os(DIRECTORY))
    else {
        return;
    };
    let directory = Path::new(&directory);
    match role.to_str().expect("a role") {
        "publisher" => publish(directory),
        "subscriber" => subscribe(directory),
        store => serve(directory, store),
    }
}

fn serve(directory: &Path, name: &str) {
    let mut options = StoreOptions::default();
    options.journal.segment_bytes = 1 << 20;
    let path = directory.join(name);
    let mut store = StoreServer::open(domain(directory), name, &path, options).expect("a store");
    loop {
        let work = store.poll().expect("a working disk");
        store.wait_at_most(work, NAP);
    }
}

/// Sends as many messages as may be in flight, and notes how far they are stable.
fn publish(directory: &Path) {
    let stable = Number::open(directory, "stable");
    let mut options = PersistentOptions::new(groups());
    options.settings.flight_messages = 500;
    let domain = domain(directory);
    let mut publisher =
        PersistentPublisher::open(&domain, "orders", SOURCE, options).expect("a publisher");
    loop {
        for _ in 0..50 {
            if publisher.try_send(&publisher.next().to_le_bytes()).is_err() {
                break;
            }
        }
        let work = publisher.poll(|event| match event {
            SourceEvent::Registered { next } => {
                assert!(next >= stable.get(), "a run begins at {next}, {} stable", stable.get());
            }
            SourceEvent::Stable { next } => stable.set(next),
            _ => {}
        });
        publisher.wait_at_most(work, NAP);
    }
}

/// Handles each message once: what comes again after a kill, before its acknowledgement, is told
/// by its sequence. A message that contradicts the order ends the process, and the test.
fn subscribe(directory: &Path) {
    let handled = Number::open(directory, "handled");
    let acknowledged = Number::open(directory, "acknowledged");
    let repeated = Number::open(directory, "repeated");
    let mut options = DurableOptions::new(groups());
    options.acknowledgement = Acknowledgement::Explicit;
    let mut subscriber = DurableSubscriber::open(domain(directory), "orders", SESSION, options)
        .expect("a subscriber");
    let failure = |text: String| {
        std::fs::write(directory.join("failure"), text).expect("written");
        std::process::exit(1);
    };
    loop {
        let mut last = None;
        let work = subscriber.poll(256, |event| match event {
            ReceiverEvent::Message(message) => {
                let (sequence, next) = (message.sequence(), handled.get());
                if message.bytes() != sequence.to_le_bytes() || sequence > next {
                    failure(format!("{message:?} where {next} is next"));
                } else if sequence < acknowledged.get() {
                    failure(format!("{message:?}, acknowledged to {}", acknowledged.get()));
                } else if sequence < next {
                    repeated.set(repeated.get() + 1);
                } else {
                    handled.set(next + 1);
                }
                last = Some(sequence);
            }
            // Never stable: others follow under their sequences.
            ReceiverEvent::Discarded { first, .. } => {
                handled.set(handled.get().min(first));
                acknowledged.set(acknowledged.get().min(first));
            }
            ReceiverEvent::Acknowledged { next, .. } => acknowledged.set(next),
            ReceiverEvent::Lost { .. } => failure(format!("{event:?}")),
            _ => {}
        });
        if let Some(sequence) = last {
            subscriber.acknowledge(SOURCE, sequence);
        }
        subscriber.wait_at_most(work, NAP);
    }
}

/// A process, killed when the test ends.
struct Process(Child);

impl Process {
    fn start(directory: &Path, role: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "killed::actor", "--nocapture"]);
        command.env(ROLE, role).env(DIRECTORY, directory);
        let log = OpenOptions::new().create(true).append(true).open(directory.join("log"));
        let log = log.expect("a log");
        let errors = log.try_clone().expect("a descriptor");
        let command = command.stdin(Stdio::null()).stdout(log).stderr(errors);
        Self(command.spawn().expect("a process"))
    }

    fn is_running(&mut self) -> bool {
        self.0.try_wait().expect("a child").is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL; a process that has ended already is what is wanted.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

#[test]
fn processes_killed_under_load_lose_and_repeat_nothing() {
    const ROLES: [&str; 5] = ["a", "b", "c", "publisher", "subscriber"];
    let kills = if std::env::var_os("LONG_TESTS").is_some() { 250 } else { 15 };
    let root = tempfile::tempdir().expect("a directory");
    let directory = root.path();
    let (stable, handled) = (Number::open(directory, "stable"), Number::open(directory, "handled"));
    let start = |role: &&str| Process::start(directory, role);
    let mut processes: Vec<Process> = ROLES.iter().map(start).collect();
    let check = |processes: &mut Vec<Process>| {
        for (process, role) in processes.iter_mut().zip(ROLES) {
            if !process.is_running() {
                let failure = std::fs::read_to_string(directory.join("failure"));
                let log = std::fs::read_to_string(directory.join("log"));
                panic!("{role} has ended: {failure:?}\n{}", log.unwrap_or_default());
            }
        }
    };
    let until = |processes: &mut Vec<Process>, wanted: &str, is_done: &dyn Fn() -> bool| {
        let deadline = Instant::now() + PATIENCE;
        while !is_done() {
            check(processes);
            let (stable, handled) = (stable.get(), handled.get());
            assert!(Instant::now() < deadline, "{wanted}: {stable} stable, {handled} handled");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for kill in 0..kills {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        // Load before each kill: another number of messages each time, and never none for long.
        let goal = stable.get() + 1 + (random >> 33) % 2_000;
        until(&mut processes, "load", &|| stable.get() >= goal);
        let victim = (random >> 20) as usize % ROLES.len();
        // Every tenth time all stores at once: then they have only their disks.
        let victims = if kill % 10 == 9 { 0..3 } else { victim..victim + 1 };
        for index in victims.clone() {
            processes[index].0.kill().expect("a running process");
        }
        for index in victims {
            processes[index].0.wait().expect("a child");
            processes[index] = start(&ROLES[index]);
        }
    }
    // The publisher stays dead: what was stable is handled all the same.
    processes[3].0.kill().expect("a running process");
    processes[3].0.wait().expect("a child");
    let end = stable.get();
    processes[3] = Process::start(directory, "idle-store");
    until(&mut processes, "everything stable is handled", &|| handled.get() >= end);
    check(&mut processes);
    let repeated = Number::open(directory, "repeated").get();
    println!("{kills} kills, {end} stable messages, {repeated} came again unacknowledged");
    assert!(end > kills, "{end} messages");
}
