//! Core-to-core latency: a cache line goes back and forth between two CPUs, written by spinning
//! threads or by sleeping threads that wake each other.

use lanecast_base::CachePadded;
use lanecast_base::sync::{AtomicU32, Ordering};
use lanecast_os::{affinity, futex};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// The fewest rounds of which a median is taken.
const ROUNDS_MIN: usize = 11;
/// Longest sleep between two checks of the deadline.
const NAP: Duration = Duration::from_millis(5);

/// Counter in its own cache line: the first side writes odd numbers, the second answers with the
/// next even ones.
type Word = CachePadded<AtomicU32>;
/// Not a count: the other side has ended.
const GONE: u32 = u32::MAX;

/// Wait strategy of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Polls the word.
    Spin,
    /// Sleeps until the other side wakes it.
    Sleep,
}

/// Parameters of a core-to-core measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreToCore {
    pub(crate) wait: Wait,
    /// Time limit of the measurement, also on a busy machine.
    pub(crate) patience: Duration,
    /// Largest number of rounds of which the median is taken.
    pub(crate) rounds: usize,
    /// Round trips in a round.
    pub(crate) per_round: u32,
}

impl CoreToCore {
    /// Median round-trip time between threads on two CPUs, in nanoseconds. None if the CPUs are
    /// equal or unavailable, or if too few rounds fit into the time limit.
    pub(crate) fn measure(&self, first: usize, second: usize) -> Option<f64> {
        if first == second {
            return None;
        }
        let word = Word::default();
        let deadline = Instant::now() + self.patience;
        let rounds = std::thread::scope(|scope| {
            let answering = pinned(scope, second, || self.answer(&word, deadline));
            let asking = pinned(scope, first, || self.ask(&word, deadline));
            let rounds = asking.and_then(|asking| asking.join().ok()).flatten();
            // Ends the second side, even if the first one could not start.
            word.store(GONE, Ordering::Relaxed);
            self.wait.wake(&word);
            answering?.join().ok().flatten()?;
            rounds
        });
        median(rounds?, u64::from(self.per_round))
    }

    fn ask(&self, word: &Word, deadline: Instant) -> Vec<Duration> {
        let mut rounds = Vec::with_capacity(self.rounds);
        let mut count = 0;
        while rounds.len() < self.rounds {
            let start = Instant::now();
            for _ in 0..self.per_round {
                word.store(count + 1, Ordering::Relaxed);
                self.wait.wake(word);
                count += 2;
                if !self.wait.until(word, count, deadline) {
                    return rounds;
                }
            }
            rounds.push(start.elapsed());
        }
        rounds
    }

    fn answer(&self, word: &Word, deadline: Instant) {
        for count in (1..GONE).step_by(2) {
            if !self.wait.until(word, count, deadline) {
                return;
            }
            word.store(count + 1, Ordering::Relaxed);
            self.wait.wake(word);
        }
    }
}

impl Wait {
    /// Waits until the word holds `count`; false if the other side has ended or the deadline has
    /// passed.
    fn until(self, word: &Word, count: u32, deadline: Instant) -> bool {
        let looks = if self == Self::Spin { 1000 } else { 1 };
        loop {
            for _ in 0..looks {
                match word.load(Ordering::Relaxed) {
                    found if found == count => return true,
                    GONE => return false,
                    found if self == Self::Sleep => futex::wait(word, found, NAP),
                    _ => {}
                }
            }
            if Instant::now() >= deadline {
                return false;
            }
        }
    }

    fn wake(self, word: &Word) {
        if self == Self::Sleep {
            futex::wake(word, 1);
        }
    }
}

/// Runs `work` in a thread pinned to `cpu`; none if the thread cannot be started or pinned.
pub(crate) fn pinned<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    cpu: usize,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, Option<T>>> {
    let run = move || affinity::pin(cpu).is_ok().then(work);
    Builder::new().spawn_scoped(scope, run).ok()
}

/// Median time of a turn in nanoseconds, of rounds with `turns` turns each; none for too few
/// rounds.
pub(crate) fn median(mut rounds: Vec<Duration>, turns: u64) -> Option<f64> {
    if rounds.len() < ROUNDS_MIN {
        return None;
    }
    rounds.sort_unstable();
    Some(rounds[rounds.len() / 2].as_nanos() as f64 / turns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPINNING: CoreToCore = CoreToCore {
        wait: Wait::Spin,
        patience: Duration::from_millis(25),
        rounds: 21,
        per_round: 10,
    };

    #[test]
    fn both_ways_of_waiting_hand_a_line_over() {
        let [first, second, ..] = affinity::allowed().unwrap()[..] else { return };
        for wait in [Wait::Spin, Wait::Sleep] {
            // The rounds end the measurement, not the time: others may have the CPUs.
            let patience = Duration::from_secs(300);
            let hand_over = CoreToCore { wait, patience, ..SPINNING };
            let found = hand_over.measure(first, second);
            assert!(found.is_some_and(|ns| (1.0..1e8).contains(&ns)), "{wait:?} {found:?}");
        }
    }

    #[test]
    fn a_silent_other_side_is_given_up_at_the_deadline() {
        for wait in [Wait::Spin, Wait::Sleep] {
            let hand_over = CoreToCore { wait, ..SPINNING };
            let deadline = Instant::now() + Duration::from_millis(1);
            assert!(hand_over.ask(&Word::default(), deadline).is_empty());
            hand_over.answer(&Word::default(), deadline);
            let long = Instant::now() + Duration::from_secs(60);
            hand_over.answer(&Word::new(AtomicU32::new(GONE)), long);
            assert!(Instant::now() < long);
        }
    }

    #[test]
    fn the_median_needs_some_rounds() {
        let rounds = |count| (0..count).map(Duration::from_nanos).collect::<Vec<_>>();
        assert_eq!(median(rounds(ROUNDS_MIN as u64 - 1), 1), None);
        assert_eq!(median(rounds(21), 2), Some(5.0));
    }
}
