//! One-way latency, from the intended and from the actual time of sending.

use crate::distribution::Distribution;
use crate::recorder::Recorder;
use lanecast_base::clock::Clock;
use serde::Serialize;
use std::hint::black_box;

/// One-way latency: from the intended and from the actual time of sending.
///
/// A stalled sender sends late, and its messages then arrive soon after they were sent: only the
/// latency from the intended time includes the delay that a reader sees.
#[derive(Clone, Debug, Default)]
pub struct LatencyRecorder {
    actual: Recorder,
    intended: Recorder,
}

impl LatencyRecorder {
    /// Counts one message.
    #[inline(always)]
    pub fn record(&mut self, actual_ns: u64, intended_ns: u64) {
        self.actual.record(actual_ns);
        self.intended.record(intended_ns);
    }

    /// Counts all that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.actual.merge(&other.actual);
        self.intended.merge(&other.intended);
    }

    /// Both distributions; none if no message was counted.
    pub fn latency(&self) -> Option<Latency> {
        let (actual, intended) = (self.actual.distribution()?, self.intended.distribution()?);
        Some(Latency { actual, intended })
    }

    /// Cost of recording one message with its reading of `clock`, in nanoseconds: a median. Takes
    /// about a millisecond.
    pub fn cost_ns(clock: Clock) -> f64 {
        const ROUNDS: usize = 31;
        const RECORDS: u64 = 1000;
        let mut recorder = Self::default();
        let mut rounds: Vec<u64> = (0..ROUNDS)
            .map(|_| {
                let start = clock.ticks_ordered();
                let mut now = start;
                for index in 0..RECORDS {
                    // Typical latencies: some hundred nanoseconds, all different.
                    let (actual, intended) =
                        black_box((now.saturating_sub(index * 37 % 512), now.saturating_sub(600)));
                    now = clock.ticks_ordered();
                    let ns = |sent| clock.ns(now.saturating_sub(sent));
                    recorder.record(ns(actual), ns(intended));
                }
                now.wrapping_sub(start)
            })
            .collect();
        black_box(&recorder);
        rounds.sort_unstable();
        clock.ns(rounds[ROUNDS / 2]) as f64 / RECORDS as f64
    }
}

/// One-way latency of the stamped messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Latency from the actual time of sending.
    pub actual: Distribution,
    /// Latency from the intended time of sending.
    pub intended: Distribution,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_distributions_have_every_message() {
        let mut recorder = LatencyRecorder::default();
        assert_eq!(recorder.latency(), None);
        recorder.record(100, 5000);
        let mut other = LatencyRecorder::default();
        other.record(300, 300);
        recorder.merge(&other);
        let latency = recorder.latency().unwrap();
        assert_eq!((latency.actual.min_ns, latency.actual.max_ns), (100, 300));
        assert_eq!((latency.intended.min_ns, latency.intended.max_ns), (300, 5000));
    }

    #[test]
    fn recording_costs_something_and_is_told() {
        let cost = LatencyRecorder::cost_ns(Clock::host());
        assert!(cost > 0.0 && cost < 100_000.0, "{cost}");
    }
}
