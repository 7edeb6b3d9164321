//! Recording of times.
//!
//! Short times, which are nearly all, cost one addition: each nanosecond below [`EXACT_NS`] has
//! a counter of its own. Longer ones go to a histogram, which takes longer, but so did they.
//! Least, largest and mean are worked out at the end.

use crate::distribution::Distribution;
use hdrhistogram::Histogram;
use std::hint::black_box;

/// Times below this are told apart to the nanosecond.
pub const EXACT_NS: u64 = 4096;
/// Counters of short times.
const SHORT: usize = EXACT_NS as usize;
/// The longest time told apart from longer ones: 60 s.
const LONGEST_NS: u64 = 60_000_000_000;
/// Longer times are kept to this many significant digits.
const DIGITS: u8 = 3;

/// Counts times: those below [`EXACT_NS`] exactly, those up to 60 s to within 0.1 %, longer ones
/// as 60 s. Least, largest and mean are exact.
///
/// All memory is taken, and touched, when a recorder is made; recording only counts.
#[derive(Clone, Debug)]
pub struct Recorder {
    short: Box<[u64; SHORT]>,
    long: Histogram<u64>,
    long_min_ns: u64,
    long_max_ns: u64,
    long_sum_ns: u128,
}

impl Recorder {
    /// An empty recorder.
    pub fn new() -> Self {
        let mut long = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS)
            .expect("the bounds are ascending and the digits at most five");
        // Fresh memory may be a promise that the system keeps at the first write: write now.
        long.reset();
        let mut short = Box::new([1; SHORT]);
        black_box(&mut short).fill(0);
        Self { short, long, long_min_ns: u64::MAX, long_max_ns: 0, long_sum_ns: 0 }
    }

    /// Counts one time.
    #[inline(always)]
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Counts the same time `count` times.
    #[inline(always)]
    pub fn record_many(&mut self, ns: u64, count: u64) {
        match self.short.get_mut(usize::try_from(ns).unwrap_or(SHORT)) {
            Some(counted) => *counted += count,
            None => self.record_long(ns, count),
        }
    }

    #[cold]
    #[inline(never)]
    fn record_long(&mut self, ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.long.saturating_record_n(ns, count);
        self.long_min_ns = self.long_min_ns.min(ns);
        self.long_max_ns = self.long_max_ns.max(ns);
        self.long_sum_ns += u128::from(ns) * u128::from(count);
    }

    /// Counts all that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.short.iter_mut().zip(other.short.iter()) {
            *count += more;
        }
        self.long.add(&other.long).expect("all recorders have the same bounds");
        self.long_min_ns = self.long_min_ns.min(other.long_min_ns);
        self.long_max_ns = self.long_max_ns.max(other.long_max_ns);
        self.long_sum_ns += other.long_sum_ns;
    }

    /// How many times were counted. Adds up the counters: for the end of a run.
    pub fn samples(&self) -> u64 {
        self.short.iter().sum::<u64>() + self.long.len()
    }

    /// The distribution; none if nothing was counted.
    pub fn distribution(&self) -> Option<Distribution> {
        let buckets = self.buckets();
        let (first, last) = (buckets.first()?, buckets.last()?);
        // The least of the short times is its bucket; that of long ones is not.
        let min_ns = first.0.min(self.long_min_ns);
        let max_ns = last.0;
        let short_sum = self.short_counts().map(|(ns, count)| u128::from(ns) * u128::from(count));
        let sum_ns = short_sum.sum::<u128>() + self.long_sum_ns;
        Some(Distribution::new(buckets, min_ns, max_ns, sum_ns))
    }

    fn short_counts(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..).zip(self.short.iter().copied()).filter(|(_, count)| *count > 0)
    }

    /// Times and counts, ascending; each time is the longest of those counted there.
    fn buckets(&self) -> Vec<(u64, u64)> {
        let long =
            self.long.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()));
        let mut buckets: Vec<_> = self.short_counts().chain(long).collect();
        // The last one's bound may lie above the largest time, or (beyond 60 s) below it.
        if let Some((bound, _)) = buckets.last_mut().filter(|_| self.long_max_ns > 0) {
            *bound = self.long_max_ns;
        }
        buckets
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
