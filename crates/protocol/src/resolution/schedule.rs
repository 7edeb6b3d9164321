//! When to tell, and when to ask.

use crate::rng::Rng;
use crate::{MILLISECOND, Nanos, SECOND};
use std::collections::BTreeSet;

/// Times are rounded to this, so that what belongs together is due together and fits one frame.
const GRAIN: Nanos = MILLISECOND;

/// How often something has been said, and when it is to be said again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    began: Nanos,
    said: u32,
}

impl Pace {
    const DOUBLINGS: u32 = 6;

    /// It is being said now; when is it due again?
    pub(super) fn next(&mut self, now: Nanos, rng: &mut Rng) -> Nanos {
        if self.said == 0 {
            self.began = now;
        }
        let age = now.saturating_sub(self.began);
        let delay = match self.said {
            said if said < Self::DOUBLINGS => (10 * MILLISECOND) << said,
            _ if age < 5 * SECOND => 500 * MILLISECOND,
            _ if age < 60 * SECOND => SECOND,
            _ => 5 * SECOND + rng.below(5 * SECOND - GRAIN),
        };
        self.said = self.said.saturating_add(1);
        rounded(now.saturating_add(delay))
    }

    /// How often it has been said.
    pub(super) const fn said(&self) -> u32 {
        self.said
    }
}

/// The time, rounded up.
pub(super) fn rounded(time: Nanos) -> Nanos {
    time.checked_next_multiple_of(GRAIN).unwrap_or(time)
}

/// Things in the order of the times when they are due; equal times in the order of the things.
#[derive(Debug)]
pub(super) struct Schedule<T>(BTreeSet<(Nanos, T)>);

impl<T: Ord + Clone> Schedule<T> {
    pub(super) const fn new() -> Self {
        Self(BTreeSet::new())
    }

    pub(super) fn put(&mut self, due: Nanos, thing: T) {
        self.0.insert((due, thing));
    }

    pub(super) fn remove(&mut self, due: Nanos, thing: T) {
        self.0.remove(&(due, thing));
    }

    /// When the first is due.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        self.0.first().map(|(due, _)| *due)
    }

    /// The first, if it is due.
    pub(super) fn due(&self, now: Nanos) -> Option<T> {
        self.0.first().filter(|(due, _)| *due <= now).map(|(_, thing)| thing.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_slows_down_and_never_ends() {
        let (mut pace, mut rng) = (Pace::default(), Rng::new(1));
        let mut now = 1_000 * SECOND;
        let mut delay = || {
            let due = pace.next(now, &mut rng);
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
    fn absurd_times_do_no_harm() {
        let (mut pace, mut rng) = (Pace::default(), Rng::new(1));
        pace.next(u64::MAX, &mut rng);
        pace.next(0, &mut rng);
        pace.next(u64::MAX - 1, &mut rng);
    }
}
