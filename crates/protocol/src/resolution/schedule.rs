//! Timing of Adverts and Queries: back-off of repetitions, and queues ordered by due time.

use crate::rng::Rng;
use crate::{MILLISECOND, Nanos, SECOND};
use std::collections::BTreeSet;

/// Due times are rounded up to this, so that entries share frames.
const GRAIN: Nanos = MILLISECOND;

/// Repetitions of an entry at growing intervals.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    first_at: Nanos,
    count: u32,
}

impl Backoff {
    const DOUBLINGS: u32 = 6;

    /// Counts a repetition now; returns the time of the next.
    pub(super) fn next(&mut self, now: Nanos, rng: &mut Rng) -> Nanos {
        if self.count == 0 {
            self.first_at = now;
        }
        let age = now.saturating_sub(self.first_at);
        let delay = match self.count {
            // Dense at first: a lost frame then costs little time.
            count if count < Self::DOUBLINGS => (10 * MILLISECOND) << count,
            _ if age < 5 * SECOND => 500 * MILLISECOND,
            _ if age < 60 * SECOND => SECOND,
            _ => 5 * SECOND + rng.below(5 * SECOND - GRAIN),
        };
        self.count = self.count.saturating_add(1);
        // Rounded up to a grain: entries that are due together share a frame.
        rounded(now.saturating_add(delay))
    }

    /// Number of repetitions so far.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }
}

/// Rounds a time up.
pub(super) fn rounded(time: Nanos) -> Nanos {
    time.checked_next_multiple_of(GRAIN).unwrap_or(time)
}

/// Entries in the order of their due times, then of their own order.
#[derive(Debug)]
pub(super) struct Schedule<T>(BTreeSet<(Nanos, T)>);

impl<T: Ord + Clone> Schedule<T> {
    pub(super) const fn new() -> Self {
        Self(BTreeSet::new())
    }

    pub(super) fn put(&mut self, due: Nanos, entry: T) {
        self.0.insert((due, entry));
    }

    pub(super) fn remove(&mut self, due: Nanos, entry: T) {
        self.0.remove(&(due, entry));
    }

    /// Due time of the first entry.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        self.0.first().map(|(due, _)| *due)
    }

    /// The first entry, if it is due.
    pub(super) fn due(&self, now: Nanos) -> Option<T> {
        self.0.first().filter(|(due, _)| *due <= now).map(|(_, entry)| entry.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_grow_and_repetitions_never_end() {
        let (mut backoff, mut rng) = (Backoff::default(), Rng::new(1));
        let mut now = 1_000 * SECOND;
        let mut delay = || {
            let due = backoff.next(now, &mut rng);
            let delay = due - now;
            now = due;
            delay / MILLISECOND
        };
        let first: Vec<_> = (0..6).map(|_| delay()).collect();
        assert_eq!(first, [10, 20, 40, 80, 160, 320]);
        assert!((0..9).all(|_| delay() == 500), "until it is 5 s old");
        let seconds = (0..60).take_while(|_| delay() == 1_000).count();
        assert!((54..=56).contains(&seconds), "until it is a minute old: {seconds}");
        let late: Vec<_> = (0..1_000).map(|_| delay()).collect();
        assert!(late.iter().all(|delay| (5_000..=10_000).contains(delay)));
        assert!(late.iter().any(|delay| *delay > 9_000) && late.iter().any(|d| *d < 6_000));
    }

    #[test]
    fn extreme_times_do_no_harm() {
        let (mut backoff, mut rng) = (Backoff::default(), Rng::new(1));
        for now in [u64::MAX, 0, u64::MAX - 1] {
            let due = backoff.next(now, &mut rng);
            assert!(due >= now, "{due} lies before {now}");
        }
    }
}
