//! What the machine can do right now, so that figures of different moments can be compared: the
//! same program runs at another speed when other machines share the processor.

use lanecast_base::Pad;
use lanecast_base::sync::{AtomicU64, Ordering};
use lanecast_os::affinity;
use serde::Serialize;
use std::hint::black_box;
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// The longest that either measurement takes, whoever disturbs it.
const PATIENCE: Duration = Duration::from_millis(25);
/// Hand-overs, there and back, between two looks at the clock.
const HAND_OVERS: u64 = 100;
/// Multiplications between two looks at the clock.
const MULTIPLICATIONS: u64 = 5000;
/// The most rounds of which the median is taken, and the fewest that make one.
const ROUNDS: usize = 101;
const ROUNDS_MIN: usize = 11;

/// How fast the machine is at this moment, in nanoseconds; absent where that cannot be found out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Yardstick {
    /// A cache line handed to the other CPU and back.
    pub line_ns: Option<f64>,
    /// One turn of a fixed loop of dependent multiplications on the publisher's CPU.
    pub loop_ns: Option<f64>,
}

impl Yardstick {
    /// Measures between two CPUs, in threads of its own, for some milliseconds.
    pub fn measure(publisher_cpu: usize, subscriber_cpu: usize) -> Self {
        Self { line_ns: line_ns(publisher_cpu, subscriber_cpu), loop_ns: loop_ns(publisher_cpu) }
    }
}

/// The word in a cache line of its own: the first side counts to odd numbers, the second answers
/// with the even ones that follow.
type Word = Pad<AtomicU64>;
/// No count: the other side has gone.
const GONE: u64 = u64::MAX;

fn line_ns(first: usize, second: usize) -> Option<f64> {
    if first == second {
        return None;
    }
    let word = Pad::new(AtomicU64::new(0));
    let deadline = Instant::now() + PATIENCE;
    std::thread::scope(|scope| {
        let answering = pinned(scope, second, || answer(&word, deadline));
        let asking = pinned(scope, first, || ask(&word, deadline));
        let rounds = asking.and_then(|asking| asking.join().ok()).flatten();
        // Whatever kept the first side away, the second need not wait for it.
        word.store(GONE, Ordering::Relaxed);
        answering?.join().ok().flatten()?;
        median(rounds?, 1.0 / HAND_OVERS as f64)
    })
}

/// Runs `work` in a thread on `cpu`; nothing comes of it if the thread cannot be had there.
fn pinned<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    cpu: usize,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, Option<T>>> {
    let run = move || affinity::pin(cpu).is_ok().then(work);
    Builder::new().spawn_scoped(scope, run).ok()
}

fn ask(word: &Word, deadline: Instant) -> Vec<Duration> {
    let mut rounds = Vec::with_capacity(ROUNDS);
    let mut count = 0;
    while rounds.len() < ROUNDS {
        let start = Instant::now();
        for _ in 0..HAND_OVERS {
            word.store(count + 1, Ordering::Relaxed);
            count += 2;
            if !wait_for(word, count, deadline) {
                return rounds;
            }
        }
        rounds.push(start.elapsed());
    }
    rounds
}

fn answer(word: &Word, deadline: Instant) {
    for count in (0..).step_by(2) {
        if !wait_for(word, count + 1, deadline) {
            return;
        }
        word.store(count + 2, Ordering::Relaxed);
    }
}

/// Spins until the word holds `count`; gives up when the other side has gone or at the deadline.
fn wait_for(word: &Word, count: u64, deadline: Instant) -> bool {
    loop {
        for _ in 0..1000 {
            match word.load(Ordering::Relaxed) {
                found if found == count => return true,
                GONE => return false,
                _ => {}
            }
        }
        if Instant::now() >= deadline {
            return false;
        }
    }
}

fn loop_ns(cpu: usize) -> Option<f64> {
    let multiply = || {
        let deadline = Instant::now() + PATIENCE;
        let mut rounds = Vec::with_capacity(ROUNDS);
        while rounds.len() < ROUNDS && Instant::now() < deadline {
            let start = Instant::now();
            let mut product = black_box(1u64);
            for _ in 0..MULTIPLICATIONS {
                // The shift keeps the compiler from multiplying the factors with one another.
                product = (product ^ (product >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
            black_box(product);
            rounds.push(start.elapsed());
        }
        rounds
    };
    let rounds = std::thread::scope(|scope| pinned(scope, cpu, multiply)?.join().ok().flatten());
    median(rounds?, 1.0 / MULTIPLICATIONS as f64)
}

fn median(mut rounds: Vec<Duration>, scale: f64) -> Option<f64> {
    if rounds.len() < ROUNDS_MIN {
        return None;
    }
    rounds.sort_unstable();
    Some(rounds[rounds.len() / 2].as_nanos() as f64 * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads are slow to start where others have the CPU; nothing here takes that long.
    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn one_cpu_hands_nothing_over_but_multiplies() {
        let cpu = affinity::allowed().unwrap()[0];
        let start = Instant::now();
        let found = Yardstick::measure(cpu, cpu);
        assert_eq!(found.line_ns, None);
        assert!(found.loop_ns.is_none_or(|ns| ns > 0.01), "{found:?}");
        assert!(start.elapsed() < SOON);
    }

    #[test]
    fn a_missing_cpu_gives_nothing_and_hangs_nobody() {
        let cpu = affinity::allowed().unwrap()[0];
        let start = Instant::now();
        assert_eq!(Yardstick::measure(cpu, 99_999).line_ns, None);
        let none = Yardstick { line_ns: None, loop_ns: None };
        assert_eq!(Yardstick::measure(99_999, cpu), none);
        assert!(start.elapsed() < SOON);
    }

    #[test]
    fn two_cpus_hand_a_line_over() {
        let [first, second, ..] = affinity::allowed().unwrap()[..] else { return };
        // Where others have the CPUs all the time, there may be no answer; here and there is one.
        let found = (0..100).find_map(|_| Yardstick::measure(first, second).line_ns);
        assert!(found.is_some_and(|ns| (1.0..1e6).contains(&ns)), "{found:?}");
    }

    #[test]
    fn a_silent_other_side_is_given_up_at_the_deadline() {
        let word = Pad::new(AtomicU64::new(0));
        let deadline = Instant::now() + Duration::from_millis(1);
        assert!(ask(&word, deadline).is_empty());
        answer(&Pad::new(AtomicU64::new(0)), deadline);
        answer(&Pad::new(AtomicU64::new(GONE)), Instant::now() + SOON);
    }

    #[test]
    fn the_median_needs_some_rounds() {
        let rounds = |count| (0..count).map(Duration::from_nanos).collect::<Vec<_>>();
        assert_eq!(median(rounds(ROUNDS_MIN as u64 - 1), 1.0), None);
        assert_eq!(median(rounds(21), 0.5), Some(5.0));
    }
}
