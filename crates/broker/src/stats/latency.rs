//! How long messages take inside the server.

use crate::Nanos;
use hdrhistogram::Histogram;

/// One message of so many is timed.
const ONE_OF: u32 = 64;
/// Longer times count as this one.
const LONGEST_NS: Nanos = 60_000_000_000;

/// How long something took, over all that was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Half of them took at most this long.
    pub p50_ns: Nanos,
    /// 99 % did.
    pub p99_ns: Nanos,
    /// How many were timed.
    pub samples: u64,
}

/// The times that a server keeps.
#[derive(Debug)]
pub(crate) struct LatencyRecorder {
    /// From when a command is taken up until what follows from it stands in outboxes.
    commands: Histogram<u64>,
    /// From when bytes were read until the system has all that followed from them.
    rounds: Histogram<u64>,
    until_next: u32,
}

impl LatencyRecorder {
    pub(crate) fn new() -> Self {
        // Two digits: that is fine enough, and stays in the cache.
        let histogram = || {
            Histogram::new_with_bounds(1, LONGEST_NS, 2).unwrap_or_else(|_| unreachable!("bounds"))
        };
        Self { commands: histogram(), rounds: histogram(), until_next: ONE_OF }
    }

    /// Whether the command at hand is to be timed.
    #[inline]
    pub(crate) fn is_turn(&mut self) -> bool {
        self.until_next -= 1;
        if self.until_next == 0 {
            self.until_next = ONE_OF;
            return true;
        }
        false
    }

    pub(crate) fn note_command(&mut self, took: Nanos) {
        self.commands.saturating_record(took);
    }

    pub(crate) fn note_round(&mut self, took: Nanos) {
        self.rounds.saturating_record(took);
    }

    pub(crate) fn commands(&self) -> Latency {
        Latency::of(&self.commands)
    }

    pub(crate) fn rounds(&self) -> Latency {
        Latency::of(&self.rounds)
    }
}

impl Latency {
    fn of(histogram: &Histogram<u64>) -> Self {
        Self {
            p50_ns: histogram.value_at_quantile(0.5),
            p99_ns: histogram.value_at_quantile(0.99),
            samples: histogram.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_many_is_timed_and_percentiles_are_right() {
        let mut delays = LatencyRecorder::new();
        let timed = (0..6_400).filter(|_| delays.is_turn()).count();
        assert_eq!(timed, 100);
        for took in 1..=100 {
            delays.note_command(took);
        }
        delays.note_round(u64::MAX);
        assert_eq!(delays.commands(), Latency { p50_ns: 50, p99_ns: 99, samples: 100 });
        assert!(delays.rounds().p50_ns >= LONGEST_NS);
    }
}
