//! A cache line handed to and fro between two CPUs: by spinning threads, or by sleeping ones that
//! wake each other.

use lanecast_base::CachePadded;
use lanecast_base::sync::{AtomicU32, Ordering};
use lanecast_os::{affinity, futex};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// The fewest rounds of which a median is taken.
const ROUNDS_MIN: usize = 11;
/// The longest sleep between two looks at the clock.
const NAP: Duration = Duration::from_millis(5);

/// The word in a cache line of its own: the first side counts to odd numbers, the second answers
/// with the even ones that follow.
type Word = CachePadded<AtomicU32>;
/// No count: the other side has gone.
const GONE: u32 = u32::MAX;

/// How each side waits for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// It looks again and again.
    Spin,
    /// It sleeps until the other side wakes it.
    Sleep,
}

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreToCore {
    pub(crate) wait: Wait,
    /// The longest that it takes, whoever disturbs it.
    pub(crate) patience: Duration,
    /// The most rounds of which the median is taken.
    pub(crate) rounds: usize,
    /// Ways there and back in a round.
    pub(crate) per_round: u32,
}

impl CoreToCore {
    /// The time there and back between threads on two CPUs, in nanoseconds: a median. None if the
    /// CPUs are the same one, cannot be had, or too little was done in time.
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
            // Whatever kept the first side away, the second need not wait for it.
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
    /// Waits until the word holds `count`; gives up when the other side has gone, or at the
    /// deadline.
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

/// Runs `work` in a thread on `cpu`; nothing comes of it if the thread cannot be had there.
pub(crate) fn pinned<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    cpu: usize,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, Option<T>>> {
    let run = move || affinity::pin(cpu).is_ok().then(work);
    Builder::new().spawn_scoped(scope, run).ok()
}

/// The median of rounds with so many turns each, in nanoseconds a turn; none of a few rounds.
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
            let hand_over = CoreToCore { wait, ..SPINNING };
            // Where others have the CPUs, there is not always an answer in time.
            let found = (0..100).find_map(|_| hand_over.measure(first, second));
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
