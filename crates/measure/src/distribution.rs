//! Distributions of times, as results hold them.

use serde::Serialize;

/// A distribution of times. A percentile is the smallest time that at least this percentage of
/// samples do not exceed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// The shortest.
    pub min_ns: u64,
    /// Median: half of the samples take at most this long.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p99_9_ns: u64,
    /// 99.99th percentile.
    pub p99_99_ns: u64,
    /// 99.999th percentile.
    pub p99_999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The average.
    pub mean_ns: f64,
    /// Number of samples.
    pub samples: u64,
    /// Pairs `(ns, count)` in ascending order: `count` samples took at most `ns`, and longer than
    /// the pair before. Exact below [`EXACT_NS`](crate::EXACT_NS), within 0.1 % above.
    pub buckets: Vec<(u64, u64)>,
}

impl Distribution {
    /// A distribution of the samples in `buckets` (at least one), whose sum is `sum_ns`.
    pub(crate) fn new(buckets: Vec<(u64, u64)>, min_ns: u64, max_ns: u64, sum_ns: u128) -> Self {
        let samples = buckets.iter().map(|(_, count)| count).sum();
        let percentile = |in_100_000| percentile(&buckets, samples, in_100_000);
        Self {
            min_ns,
            p50_ns: percentile(50_000),
            p90_ns: percentile(90_000),
            p99_ns: percentile(99_000),
            p99_9_ns: percentile(99_900),
            p99_99_ns: percentile(99_990),
            p99_999_ns: percentile(99_999),
            max_ns,
            mean_ns: sum_ns as f64 / samples as f64,
            samples,
            buckets,
        }
    }
}

/// Upper bound of the first bucket that reaches this share of the samples, in 100,000ths.
fn percentile(buckets: &[(u64, u64)], samples: u64, in_100_000: u32) -> u64 {
    let rank = (u128::from(samples) * u128::from(in_100_000)).div_ceil(100_000);
    let mut reached = 0;
    let bucket = buckets.iter().find(|(_, count)| {
        reached += u128::from(*count);
        reached >= rank
    });
    bucket.map_or(0, |(bound, _)| *bound)
}
