//! Latency inside the server, sampled by its own thread.

use crate::time::Nanos;
use hdrhistogram::Histogram;

/// One command in so many is timed: reading the clock costs as much as a small command.
const SAMPLE_EVERY: u32 = 64;
/// Longer times are recorded as this one.
const LONGEST_NS: Nanos = 60_000_000_000;

/// Percentiles of a latency over all samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The median.
    pub p50_ns: Nanos,
    /// The 99th percentile.
    pub p99_ns: Nanos,
    /// Number of samples.
    pub samples: u64,
}

/// The latency histograms of a server.
#[derive(Debug)]
pub(crate) struct LatencyRecorder {
    /// Time from the start of a command until its messages are in send queues.
    commands: Histogram<u64>,
    /// Time from reading bytes until the system accepted all messages that resulted.
    turns: Histogram<u64>,
    until_sample: u32,
}

impl LatencyRecorder {
    pub(crate) fn new() -> Self {
        // Two significant digits are precise enough, and the histogram stays in the cache.
        let histogram = || {
            Histogram::new_with_bounds(1, LONGEST_NS, 2).unwrap_or_else(|_| unreachable!("bounds"))
        };
        Self { commands: histogram(), turns: histogram(), until_sample: SAMPLE_EVERY }
    }

    /// Counts a command; whether this one is to be timed.
    #[inline]
    pub(crate) fn samples_next(&mut self) -> bool {
        self.until_sample -= 1;
        if self.until_sample == 0 {
            self.until_sample = SAMPLE_EVERY;
            return true;
        }
        false
    }

    pub(crate) fn record_command(&mut self, ns: Nanos) {
        self.commands.saturating_record(ns);
    }

    pub(crate) fn record_turn(&mut self, ns: Nanos) {
        self.turns.saturating_record(ns);
    }

    pub(crate) fn commands(&self) -> Latency {
        Latency::of(&self.commands)
    }

    pub(crate) fn turns(&self) -> Latency {
        Latency::of(&self.turns)
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
        let mut latency = LatencyRecorder::new();
        let timed = (0..6_400).filter(|_| latency.samples_next()).count();
        assert_eq!(timed, 100);
        for ns in 1..=100 {
            latency.record_command(ns);
        }
        latency.record_turn(u64::MAX);
        assert_eq!(latency.commands(), Latency { p50_ns: 50, p99_ns: 99, samples: 100 });
        assert!(latency.turns().p50_ns >= LONGEST_NS);
    }
}
