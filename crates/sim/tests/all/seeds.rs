//! Many runs of the network protocols, each from its seed.
//!
//! `SEED=n` runs one seed; `SEEDS=a..b` runs some. The long test tells how far it has come, so
//! that one that was cut short goes on from there: `SEEDS=n..100000`.

use lanecast_sim::run::{self, Failure, Outcome};
use lanecast_sim::scenario::Focus;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write;
use std::ops::Range;
use std::panic::{RefUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of runs between two progress reports.
pub(crate) const SLICE: usize = 10_000;
/// Runs of each focus beside the general ones.
const FOCUSED: u64 = 250;
/// Failures after which to stop.
const FAILURES_MAX: usize = 10;

/// Seeds set by the environment, or else `usual`.
pub(crate) fn seeds(usual: Range<u64>) -> Range<u64> {
    let number = |text: &str| text.trim().parse::<u64>().expect("a number");
    if let Ok(seed) = std::env::var("SEED") {
        return number(&seed)..number(&seed) + 1;
    }
    let Ok(some) = std::env::var("SEEDS") else { return usual };
    let (first, end) = some.split_once("..").expect("SEEDS=first..end");
    number(first)..number(end)
}

/// Runs `seeds` on as many threads as there are processors; shows the lowest that fails.
pub(crate) fn run_all<O: Default + Send, F: Display + Send>(
    seeds: Range<u64>,
    run: impl Fn(u64) -> Result<O, F> + Sync + RefUnwindSafe,
    add: impl Fn(&mut O, &O) + Sync,
) -> O {
    let next = AtomicU64::new(seeds.start);
    let total = Mutex::new(O::default());
    let failures = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let failed = failures.lock().map_or(0, |failures| failures.len());
            if seed >= seeds.end || failed >= FAILURES_MAX {
                return;
            }
            match catch_unwind(|| run(seed)) {
                Ok(Ok(outcome)) => add(&mut total.lock().expect("no panic"), &outcome),
                Ok(Err(failure)) => _ = failures.lock().expect("no panic").insert(seed, failure),
                Err(_) => panic!("SEED={seed} panicked"),
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
    let failures = failures.into_inner().expect("no panic");
    for (seed, failure) in failures.iter().skip(1) {
        let words = failure.to_string();
        println!("seed {seed}: {}", words.lines().rev().nth(1).unwrap_or_default());
    }
    if let Some((seed, failure)) = failures.iter().next() {
        panic!("SEED={seed}: {failure}");
    }
    total.into_inner().expect("no panic")
}

#[test]
fn many_runs_keep_every_promise() {
    let seeds = seeds(0..2_000);
    let all = seeds.end - seeds.start >= 2_000;
    let total = run_all(seeds, run_about(Focus::Anything), Outcome::add);
    println!("{total:?}");
    // Runs without events prove nothing.
    if all {
        let much = [total.read, total.lost, total.repairs, total.naks, total.refusals];
        assert!(total.overtaken > 5_000, "{total:?}");
        assert!(much.iter().all(|count| *count > 5_000), "{total:?}");
        let ends = [total.closed, total.died, total.joined_again, total.gentle];
        assert!(ends.iter().all(|count| *count > 100), "{total:?}");
        assert!(total.subscribers > 2_000 && total.timed_out > 100, "{total:?}");
        assert!(total.evicted > 10 && total.revived > 20, "{total:?}");
    }
}

#[test]
fn topics_that_come_late_lose_nothing_in_silence() {
    let total = run_some(Focus::LateTopics);
    assert!(total.is_none_or(|it| it.late_topics > 300 && it.gentle > 20), "{total:?}");
}

#[test]
fn subscribers_that_resume_account_for_every_message() {
    let total = run_some(Focus::Resumption);
    let is_enough = |it: Outcome| it.timed_out > 20 && it.joined_again > 20;
    assert!(total.is_none_or(is_enough), "{total:?}");
}

/// Runs a few hundred seeds, and returns their outcome unless the environment chose the seeds.
fn run_some(focus: Focus) -> Option<Outcome> {
    let usual = 0..FOCUSED;
    let seeds = seeds(usual.clone());
    let is_usual = seeds == usual;
    let total = run_all(seeds, run_about(focus), Outcome::add);
    println!("{total:?}");
    is_usual.then_some(total)
}

fn run_about(focus: Focus) -> impl Fn(u64) -> Result<Outcome, Box<Failure>> + Sync + RefUnwindSafe {
    move |seed| run::run(focus, seed)
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn very_many_runs_keep_every_promise() {
    run_very_many(Focus::Anything, 2_000..100_000);
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn very_many_late_topics_and_resumptions() {
    for focus in [Focus::LateTopics, Focus::Resumption] {
        run_very_many(focus, FOCUSED..20_000);
    }
}

fn run_very_many(focus: Focus, usual: Range<u64>) {
    let (seeds, mut total) = (seeds(usual), Outcome::default());
    for first in seeds.clone().step_by(SLICE) {
        let end = seeds.end.min(first + SLICE as u64);
        total.add(&run_all(first..end, run_about(focus), Outcome::add));
        // Not `println!`, which the test harness shows only for failures.
        _ = writeln!(std::io::stderr(), "seeds {}..{end} keep every promise", seeds.start);
    }
    println!("{focus:?}: {total:?}");
}
