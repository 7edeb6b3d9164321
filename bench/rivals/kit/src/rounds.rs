//! Round trips between two threads, timed by the one that begins them.
//!
//! Reading the clock costs a good part of a cache line's way, so quick round trips are timed in
//! groups, and each group counts as its mean.

use lanecast_base::clock::Clock;

use crate::recorder::Recorder;

/// Round trips that are timed together where both ends spin.
pub const SPINNING_GROUP: u64 = 64;

/// Times of many round trips.
#[derive(Debug)]
pub struct Rounds {
    /// Round trips.
    pub rounds: u64,
    /// Round trips that returned a different value than was sent.
    pub damaged: u64,
    /// Ticks from the first to the last.
    pub ticks: u64,
    /// Mean of each group.
    pub recorder: Recorder,
}

impl Rounds {
    /// Makes and times round trips: `call` sends a value and returns what comes back. Rounded up
    /// to whole groups.
    pub fn time(wanted: u64, group: u64, mut call: impl FnMut(u64) -> u64) -> Self {
        let (groups, mut recorder) = (whole_groups(wanted, group) / group, Recorder::default());
        let (mut value, mut damaged) = (0, 0);
        let clock = Clock::host();
        let start = clock.ticks();
        let mut from = start;
        for _ in 0..groups {
            for _ in 0..group {
                value += 1;
                damaged += u64::from(call(value) != value);
            }
            let now = clock.ticks_ordered();
            let mean = clock.ns(now - from) / group;
            recorder.record(mean, mean);
            from = now;
        }
        Self { rounds: value, damaged, ticks: from - start, recorder }
    }
}

/// Round trips that [`Rounds::time`] makes: the other end has to answer as many.
pub fn whole_groups(wanted: u64, group: u64) -> u64 {
    wanted.max(1).next_multiple_of(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_is_made_and_checked() {
        let mut calls = 0;
        let rounds = Rounds::time(100, 64, |value| {
            calls += 1;
            if value == 7 { 0 } else { value }
        });
        assert_eq!((calls, rounds.rounds, rounds.damaged), (128, 128, 1));
        assert_eq!(whole_groups(0, 1), 1);
    }
}
