//! Recording of times, and their distribution.
//!
//! All memory is taken when a recorder is made; recording only counts.

use hdrhistogram::Histogram;
use serde::Serialize;

/// The longest time told apart from longer ones: 60 s.
const LONGEST_NS: u64 = 60_000_000_000;
/// Values are kept to this many significant digits.
const DIGITS: u8 = 3;

/// Counts times between 1 ns and 60 s, each to within 0.1 %; longer ones count as 60 s.
///
/// Least, largest and mean are exact.
#[derive(Clone, Debug)]
pub struct Recorder {
    counts: Histogram<u64>,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
}

impl Recorder {
    /// An empty recorder.
    pub fn new() -> Self {
        let counts = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
            .expect("the bounds are ascending and the digits at most five");
        Self { counts, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 }
    }

    /// Counts one time.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Counts the same time `count` times.
    #[inline]
    pub fn record_many(&mut self, ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.counts.saturating_record_n(ns, count);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns += u128::from(ns) * u128::from(count);
    }

    /// Counts all that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.counts.add(&other.counts).expect("all recorders have the same bounds");
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
    }

    /// How many times were counted.
    pub fn samples(&self) -> u64 {
        self.counts.len()
    }

    /// The distribution; none if nothing was counted.
    pub fn distribution(&self) -> Option<Distribution> {
        let samples = self.samples();
        if samples == 0 {
            return None;
        }
        let quantile = |at| self.counts.value_at_quantile(at).clamp(self.min_ns, self.max_ns);
        Some(Distribution {
            min_ns: self.min_ns,
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p99_ns: quantile(0.99),
            p99_9_ns: quantile(0.999),
            p99_99_ns: quantile(0.9999),
            max_ns: self.max_ns,
            mean_ns: self.sum_ns as f64 / samples as f64,
            samples,
        })
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

/// How times are distributed. A percentile is the least time that so many per cent of the
/// samples do not exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// The shortest.
    pub min_ns: u64,
    /// Half of the samples are at most this long.
    pub p50_ns: u64,
    /// 90 % are.
    pub p90_ns: u64,
    /// 99 % are.
    pub p99_ns: u64,
    /// 99.9 % are.
    pub p99_9_ns: u64,
    /// 99.99 % are.
    pub p99_99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The average.
    pub mean_ns: f64,
    /// How many there are.
    pub samples: u64,
}

/// One-way latency: from the intended and from the actual time of sending.
///
/// A sender that stalls sends late, and then its messages arrive soon after they were sent: only
/// the first figure shows what a reader had to wait for them.
#[derive(Clone, Debug, Default)]
pub struct LatencyRecorder {
    actual: Recorder,
    intended: Recorder,
}

impl LatencyRecorder {
    /// Counts one message.
    #[inline]
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
}

/// One-way latency of the stamped messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// From the time at which a message was sent.
    pub actual: Distribution,
    /// From the time at which the schedule wanted it sent.
    pub intended: Distribution,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The least value that at least so many in ten thousand do not exceed.
    fn oracle(sorted: &[u64], in_ten_thousand: usize) -> u64 {
        let rank = (sorted.len() * in_ten_thousand).div_ceil(10_000);
        sorted[rank - 1]
    }

    fn close(found: u64, exact: u64) -> bool {
        found.abs_diff(exact) as f64 <= exact as f64 / 1000.0
    }

    fn agrees(times: &[u64]) {
        let mut recorder = Recorder::new();
        times.iter().for_each(|&ns| recorder.record(ns));
        let found = recorder.distribution().unwrap();
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        assert_eq!(found.samples, times.len() as u64);
        assert_eq!((found.min_ns, found.max_ns), (sorted[0], *sorted.last().unwrap()));
        let mean = times.iter().map(|&ns| ns as f64).sum::<f64>() / times.len() as f64;
        assert!((found.mean_ns - mean).abs() <= mean * 1e-9, "{} {mean}", found.mean_ns);
        for (in_ten_thousand, found) in [
            (5000, found.p50_ns),
            (9000, found.p90_ns),
            (9900, found.p99_ns),
            (9990, found.p99_9_ns),
            (9999, found.p99_99_ns),
        ] {
            let exact = oracle(&sorted, in_ten_thousand);
            assert!(close(found, exact), "{in_ten_thousand}: {found} is not {exact}");
        }
    }

    #[test]
    fn percentiles_of_a_long_tail_agree_with_sorting() {
        // A cheap generator: mostly 100 to 227 ns, now and then up to some milliseconds.
        let mut state = 1u64;
        let times: Vec<u64> = (0..50_000)
            .map(|index| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let short = 100 + (state >> 57);
                if index % 997 == 0 { short + (state >> 42) } else { short }
            })
            .collect();
        agrees(&times);
    }

    #[test]
    fn few_samples_agree_with_sorting() {
        agrees(&[7]);
        agrees(&[3, 1, 2]);
        agrees(&[0, 0, 5]);
    }

    #[test]
    fn nothing_recorded_is_no_distribution() {
        assert_eq!(Recorder::new().distribution(), None);
        assert_eq!(LatencyRecorder::default().latency(), None);
    }

    #[test]
    fn beyond_the_bounds_is_counted_at_the_bound() {
        let mut recorder = Recorder::new();
        recorder.record(10 * LONGEST_NS);
        recorder.record(u64::MAX);
        let found = recorder.distribution().unwrap();
        assert_eq!((found.samples, found.min_ns, found.max_ns), (2, 10 * LONGEST_NS, u64::MAX));
    }

    #[test]
    fn recording_many_and_merging_are_recording_one_by_one() {
        let (mut single, mut many, mut other) = (Recorder::new(), Recorder::new(), Recorder::new());
        for ns in [100, 100, 100, 5000] {
            single.record(ns);
        }
        many.record_many(100, 3);
        many.record_many(9, 0);
        other.record(5000);
        many.merge(&other);
        assert_eq!(many.distribution(), single.distribution());
    }

    proptest! {
        #[test]
        fn percentiles_agree_with_sorting(
            times in prop::collection::vec(0..LONGEST_NS, 1..400),
        ) {
            agrees(&times);
        }
    }
}
