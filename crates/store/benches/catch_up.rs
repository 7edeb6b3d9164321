//! A subscriber that dies under load and comes back: how long until it is live again, and how fast
//! messages come from the store: each run, then the median, the lowest and the highest. All are
//! threads of one process over shared memory; every message is checked: none is lost, and none that
//! was acknowledged comes again.
//!
//! `cargo bench -p lanecast-store --bench catch_up`, or `-- --rate 100000 --away 10 --runs 3`, and
//! `-- --directory PATH` for another disk than that of the temporary directory;
//! `-- --cached-writes` for a store that writes through the page cache.
#![forbid(unsafe_code)]

use lanecast_shm::{Domain, DomainSettings, Visibility};
use lanecast_store::{
    DurableOptions, DurableSubscriber, PersistentOptions, PersistentPublisher, ReceiverEvent,
    StoreOptions, StoreServer,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a message: its sequence, and filling.
const BODY: usize = 100;
const SOURCE: u64 = 7;
const SESSION: u64 = 99;
/// Messages of the replay alone, without a publisher.
const REPLAYED: u64 = 2_000_000;
const NAP: Duration = Duration::from_millis(1);
/// A run that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(120);

struct Arguments {
    rate: u64,
    away: Duration,
    runs: usize,
    directory: PathBuf,
    has_direct_writes: bool,
}

fn main() {
    let mut arguments = Arguments {
        rate: 100_000,
        away: Duration::from_secs(10),
        runs: 3,
        directory: std::env::temp_dir(),
        has_direct_writes: true,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|it| it.parse::<u64>().ok()).expect("a number");
        match word.as_str() {
            "--rate" => arguments.rate = number(),
            "--away" => arguments.away = Duration::from_secs(number()),
            "--runs" => arguments.runs = number() as usize,
            "--cached-writes" => arguments.has_direct_writes = false,
            "--directory" => arguments.directory = words.next().expect("a path").into(),
            // Options that cargo bench passes to every benchmark.
            _ => {}
        }
    }
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    println!("messages of {BODY} bytes, 1 store, shared memory, {cpus} CPUs, monotonic clock");
    let rates = (0..arguments.runs).map(|_| replay(&arguments)).collect();
    summarize("replay at a subscriber", rates, "M messages/s");
    let times = (0..arguments.runs).map(|_| catch_up(&arguments)).collect();
    summarize("live again after", times, "s");
}

/// Prints the median of the runs, and their bounds.
fn summarize(name: &str, mut values: Vec<f64>, unit: &str) {
    values.sort_by(f64::total_cmp);
    if let (Some(low), Some(high)) = (values.first(), values.last()) {
        let (median, runs) = (values[values.len() / 2], values.len());
        println!(
            "{name}: {median:.2} {unit}, median of {runs} runs (lowest {low:.2}, highest {high:.2})"
        );
    }
}

/// A store on a thread of its own, until it is dropped.
struct Served<'a>(&'a AtomicBool);

impl Drop for Served<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn serve(domain: Domain, path: &Path, has_direct_writes: bool, is_over: &AtomicBool) {
    let mut options = StoreOptions::default();
    options.has_direct_writes = has_direct_writes;
    let mut store = StoreServer::open(domain, "a", path, options).expect("a store");
    while !is_over.load(Ordering::Relaxed) {
        let work = store.poll().expect("a working disk");
        store.wait_at_most(work, NAP);
    }
}

fn domain(directory: &Path) -> Domain {
    let settings = DomainSettings {
        visibility: Visibility::Process,
        directory: directory.to_owned(),
        ..DomainSettings::default()
    };
    Domain::open(settings).expect("a domain")
}

fn publisher(domain: &Domain) -> PersistentPublisher<Domain> {
    let mut options = PersistentOptions::with_store("a");
    options.settings.flight_messages = 1 << 20;
    options.settings.flight_bytes = 256 << 20;
    PersistentPublisher::open(domain, "orders", SOURCE, options).expect("a publisher")
}

/// Sends the next message.
fn send(publisher: &mut PersistentPublisher<Domain>) {
    let mut body = [0; BODY];
    body[..8].copy_from_slice(&publisher.next().to_le_bytes());
    publisher.send(&body, |_| {}).expect("accepted");
}

/// A subscriber that checks what it gets.
struct Reader {
    subscriber: DurableSubscriber<Domain>,
    first: Option<u64>,
    next: u64,
    recovered: u64,
    is_live: bool,
    acknowledged: u64,
}

impl Reader {
    fn open(domain: &Domain) -> Self {
        let options = DurableOptions::with_store("a");
        let subscriber = DurableSubscriber::open(domain.clone(), "orders", SESSION, options);
        let subscriber = subscriber.expect("a subscriber");
        let (first, next, recovered, acknowledged) = (None, 0, 0, 0);
        Self { subscriber, first, next, recovered, is_live: false, acknowledged }
    }

    fn poll(&mut self) {
        let Self { subscriber, first, next, recovered, is_live, acknowledged } = self;
        let work = subscriber.poll(256, |event| match event {
            ReceiverEvent::Message(message) => {
                assert_eq!(message.sequence(), *next, "in order, without a gap");
                assert_eq!(message.bytes()[..8], next.to_le_bytes());
                *next += 1;
                *recovered += u64::from(message.is_recovered());
            }
            ReceiverEvent::Joined { next: begin, .. } => (*first, *next) = (Some(begin), begin),
            ReceiverEvent::Recovered { .. } => *is_live = true,
            ReceiverEvent::Acknowledged { next, .. } => *acknowledged = next,
            ReceiverEvent::Lost { .. } | ReceiverEvent::Discarded { .. } => panic!("{event:?}"),
            _ => {}
        });
        subscriber.wait_at_most(work, NAP);
    }
}

/// Everything of a stream whose publisher is gone, as fast as it comes: millions of messages per
/// second.
fn replay(arguments: &Arguments) -> f64 {
    let root = tempfile::tempdir_in(&arguments.directory).expect("a directory");
    let (domain, is_over) = (domain(root.path()), AtomicBool::new(false));
    thread::scope(|scope| {
        let _served = Served(&is_over);
        let (others, path) = (domain.clone(), root.path().join("a"));
        let is_over = &is_over;
        let has_direct_writes = arguments.has_direct_writes;
        scope.spawn(move || serve(others, &path, has_direct_writes, is_over));
        let mut publisher = publisher(&domain);
        (0..REPLAYED).for_each(|_| send(&mut publisher));
        assert!(publisher.wait_stable(PATIENCE, |_| {}), "stable in time");
        drop(publisher);
        let begin = Instant::now();
        let mut reader = Reader::open(&domain);
        while reader.next < REPLAYED {
            assert!(begin.elapsed() < PATIENCE, "at {}", reader.next);
            reader.poll();
        }
        let time = begin.elapsed();
        let rate = REPLAYED as f64 / time.as_secs_f64() / 1e6;
        println!("replayed {REPLAYED} messages in {time:.2?}: {rate:.2} M messages/s, 0 lost");
        rate
    })
}

/// A subscriber that is away while messages go on, and comes back: seconds until it is live again.
fn catch_up(arguments: &Arguments) -> f64 {
    let root = tempfile::tempdir_in(&arguments.directory).expect("a directory");
    let (domain, is_over) = (domain(root.path()), AtomicBool::new(false));
    let sent = AtomicU64::new(0);
    thread::scope(|scope| {
        let _served = Served(&is_over);
        let (others, path) = (domain.clone(), root.path().join("a"));
        let (is_over, sent) = (&is_over, &sent);
        let has_direct_writes = arguments.has_direct_writes;
        scope.spawn(move || serve(others, &path, has_direct_writes, is_over));
        let (others, rate) = (domain.clone(), arguments.rate);
        scope.spawn(move || {
            let mut publisher = publisher(&others);
            send(&mut publisher);
            let begin = Instant::now();
            while !is_over.load(Ordering::Relaxed) {
                let due = (begin.elapsed().as_secs_f64() * rate as f64) as u64 + 1;
                while publisher.next() < due {
                    send(&mut publisher);
                }
                sent.store(publisher.next(), Ordering::Relaxed);
                let work = publisher.poll(|_| {});
                publisher.wait_at_most(work, NAP);
            }
        });
        let begin = Instant::now();
        let mut reader = Reader::open(&domain);
        // Nothing is missed at the start, so that `Recovered` may not come.
        while reader.next <= rate || reader.acknowledged == 0 {
            assert!(begin.elapsed() < PATIENCE, "never live: at {}", reader.next);
            reader.poll();
        }
        let (handled, acknowledged) = (reader.next, reader.acknowledged);
        drop(reader);
        thread::sleep(arguments.away);

        let (begin, missed) = (Instant::now(), sent.load(Ordering::Relaxed) - handled);
        let mut reader = Reader::open(&domain);
        while !reader.is_live {
            assert!(begin.elapsed() < PATIENCE, "never live again: at {}", reader.next);
            reader.poll();
        }
        let time = begin.elapsed();
        let first = reader.first.expect("joined");
        assert!((acknowledged..=handled).contains(&first), "{acknowledged} {first} {handled}");
        let (again, recovered) = (handled - first, reader.recovered);
        println!(
            "away {:?} at {rate} messages/s: live again after {time:.2?}, {missed} missed, \
             {recovered} recovered, 0 lost, 0 acknowledged again, {again} others again",
            arguments.away
        );
        time.as_secs_f64()
    })
}
