//! Subscribers with filters over shared memory, each of which wants one message in a hundred: the
//! rate at which the publisher offers messages, and how often it evaluates each of them.
//!
//! `cargo bench -p lanecast --bench filtered -- MESSAGES ROUNDS`, such as `20000000 5`. A round
//! goes through all cases one after the other, so that a busy machine disturbs all of them alike.
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use lanecast_os::affinity;
use std::error::Error;
use std::time::{Duration, Instant};
use tempfile::TempDir;

type Failure = Box<dyn Error + Send + Sync>;

const LIMIT: Duration = Duration::from_secs(60);
/// Each subscriber wants one message of so many.
const SHARE: usize = 100;
/// Unit of the CPU times in `/proc/self/stat`.
const TICK: Duration = Duration::from_millis(10);

/// Subscribers, and whether they have one filter or one each.
struct Case {
    name: &'static str,
    subscribers: usize,
    are_equal: bool,
}

const CASES: [Case; 3] = [
    Case { name: "1 subscriber", subscribers: 1, are_equal: true },
    Case { name: "8 subscribers, 1 filter", subscribers: 8, are_equal: true },
    Case { name: "8 subscribers, 8 filters", subscribers: 8, are_equal: false },
];

/// Figures of one case in one round.
struct Outcome {
    /// Messages offered a second.
    rate: f64,
    evaluations_per_message: f64,
    filters: usize,
    received: u64,
    lost: u64,
    /// CPU time used, as a number of CPUs.
    cpus: f64,
}

/// CPU time that this process has used.
fn cpu_time() -> Result<Duration, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The name may have spaces: the fields are counted behind it. User and system time follow.
    let (_, fields) = stat.rsplit_once(')').ok_or("an unknown form of /proc/self/stat")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u32>);
    Ok(TICK * ticks.sum::<Result<u32, _>>()?)
}

/// Receives until the publisher has left: numbers of messages received and lost.
fn receive(mut subscriber: FilteredSubscriber) -> (u64, u64) {
    let (mut received, mut lost, mut has_left) = (0, 0, false);
    while !has_left {
        let work = subscriber.poll(256, |event| match event {
            Event::Message(_) => received += 1,
            Event::Lost(gap) => lost += gap.count,
            Event::Left(..) => has_left = true,
            _ => {}
        });
        if !has_left {
            subscriber.wait(work);
        }
    }
    (received, lost)
}

fn run(case: &Case, messages: u64) -> Result<Outcome, Failure> {
    let directory = TempDir::new_in("/dev/shm")?;
    let context = Context::builder()
        .set("transports", "shm")?
        .set("shm.directory", directory.path().join("domain").display())?
        .set("filter.message_type", "fix")?
        .build()?;
    let mut publisher = context.topic("orders").filterable().publisher()?;
    let mut readers = Vec::new();
    for index in 0..case.subscribers {
        let wanted = if case.are_equal { 0 } else { index };
        let filter = format!("/55 = 'S{wanted:02}'");
        let subscriber = context.topic("orders").filter(&filter).subscriber()?;
        readers.push(std::thread::spawn(move || receive(subscriber)));
    }
    if !publisher.wait_for_subscribers(case.subscribers, LIMIT) {
        return Err("the subscribers did not come".into());
    }
    // One for each symbol, a hundred bytes long.
    let note = "x".repeat(76);
    let bodies: Vec<Vec<u8>> = (0..SHARE)
        .map(|symbol| {
            format!("35=D\u{1}55=S{symbol:02}\u{1}38=100\u{1}58={note}\u{1}").into_bytes()
        })
        .collect();
    let (before, start) = (cpu_time()?, Instant::now());
    for body in bodies.iter().cycle().take(usize::try_from(messages)?) {
        publisher.send(body)?;
    }
    let (offered, evaluations) = (start.elapsed(), publisher.evaluations());
    let (used, filters) = (cpu_time()?.saturating_sub(before), publisher.filters());
    let completion = publisher.close(LIMIT);
    if !completion.is_complete() {
        return Err(format!("not all was read: {completion:?}").into());
    }
    let mut outcome = Outcome {
        rate: messages as f64 / offered.as_secs_f64(),
        evaluations_per_message: evaluations as f64 / messages as f64,
        filters,
        received: 0,
        lost: 0,
        cpus: used.as_secs_f64() / offered.as_secs_f64(),
    };
    for reader in readers {
        let (received, lost) = reader.join().map_err(|_| "a subscriber panicked")?;
        outcome.received += received;
        outcome.lost += lost;
    }
    Ok(outcome)
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let number = |at: usize, usual| arguments.get(at).map_or(Ok(usual), |text| text.parse::<u64>());
    let (messages, rounds) = (number(0, 2_000_000)?, number(1, 5)?);
    println!(
        "{messages} messages of 100 B over shm, 1 in {SHARE} matches each filter; {rounds} rounds; \
         CPUs {:?}",
        affinity::allowed()?
    );
    let mut rates = CASES.map(|_| Vec::new());
    for _ in 0..rounds {
        for (case, rates) in CASES.iter().zip(&mut rates) {
            let outcome = run(case, messages)?;
            println!(
                "{}: {:.2} M messages/s offered, {:.3} evaluations per message; \
                 filters {}, received {}, lost {}, CPUs busy {:.1}",
                case.name,
                outcome.rate / 1e6,
                outcome.evaluations_per_message,
                outcome.filters,
                outcome.received,
                outcome.lost,
                outcome.cpus,
            );
            rates.push(outcome.rate);
        }
    }
    for (case, mut rates) in CASES.iter().zip(rates) {
        rates.sort_by(f64::total_cmp);
        let [least, median, most] =
            [0, rates.len() / 2, rates.len().saturating_sub(1)].map(|at| rates.get(at).copied());
        let [least, median, most] = [least, median, most].map(|rate| rate.unwrap_or(0.0) / 1e6);
        println!("{}: median {median:.2} M messages/s ({least:.2}..{most:.2})", case.name);
    }
    Ok(())
}
