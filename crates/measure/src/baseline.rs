//! Baseline of the machine at this moment. It makes figures of different times comparable: the same
//! program runs at another speed when other virtual machines share the processor.

use crate::core_to_core::{CoreToCore, Wait, median, pinned};
use serde::Serialize;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Time limit of each measurement, also on a busy machine.
const PATIENCE: Duration = Duration::from_millis(25);
/// Largest number of rounds of which the median is taken.
const ROUNDS: usize = 101;
/// Multiplications in a round.
const MULTIPLICATIONS: u64 = 5000;

/// Speed of the machine at this moment, in nanoseconds. A value is absent if it cannot be measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Baseline {
    /// Round trip of a cache line to the other CPU.
    pub line_ns: Option<f64>,
    /// One turn of a fixed loop of dependent multiplications on the publisher's CPU.
    pub loop_ns: Option<f64>,
}

impl Baseline {
    /// Measures between two CPUs, in two new threads, for some milliseconds.
    pub fn measure(publisher_cpu: usize, subscriber_cpu: usize) -> Self {
        let line =
            CoreToCore { wait: Wait::Spin, patience: PATIENCE, rounds: ROUNDS, per_round: 100 };
        Self {
            line_ns: line.measure(publisher_cpu, subscriber_cpu),
            loop_ns: loop_ns(publisher_cpu),
        }
    }
}

fn loop_ns(cpu: usize) -> Option<f64> {
    let rounds = std::thread::scope(|scope| pinned(scope, cpu, multiply)?.join().ok().flatten());
    median(rounds?, MULTIPLICATIONS)
}

fn multiply() -> Vec<Duration> {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_os::affinity;

    /// Threads are slow to start where others have the CPU; nothing here takes that long.
    const SOON: Duration = Duration::from_secs(60);

    #[test]
    fn one_cpu_hands_nothing_over_but_multiplies() {
        let cpu = affinity::allowed().unwrap()[0];
        let start = Instant::now();
        let found = Baseline::measure(cpu, cpu);
        assert_eq!(found.line_ns, None);
        assert!(found.loop_ns.is_none_or(|ns| ns > 0.01), "{found:?}");
        assert!(start.elapsed() < SOON);
    }

    #[test]
    fn a_missing_cpu_gives_no_result_and_blocks_no_thread() {
        let cpu = affinity::allowed().unwrap()[0];
        let start = Instant::now();
        assert_eq!(Baseline::measure(cpu, 99_999).line_ns, None);
        let none = Baseline { line_ns: None, loop_ns: None };
        assert_eq!(Baseline::measure(99_999, cpu), none);
        assert!(start.elapsed() < SOON);
    }
}
