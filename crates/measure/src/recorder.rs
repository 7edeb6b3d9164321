//! The recorder of times: counters of an HdrHistogram.
//!
//! The counters are those of an HdrHistogram with three significant digits: one for each
//! nanosecond at first, then 1024 for each doubling. The implementation is separate because
//! recording is on every message's path: a short time costs one addition. Minimum, maximum and
//! mean are computed at the end; only long times are summed while recording.

use crate::distribution::Distribution;
use std::hint::black_box;

/// Times below this are told apart to the nanosecond.
pub const EXACT_NS: u64 = 4096;
/// Counters of such short times.
const SHORT: usize = EXACT_NS as usize;
/// Counters of each doubling above: neighbours differ by less than a thousandth.
const STEP_BITS: u32 = 10;
/// Shift from a time of the first doubling to its counter.
const FIRST_SHIFT: u32 = EXACT_NS.ilog2() - STEP_BITS;
/// Times from here on share one counter: 68.7 s.
const LONGEST_NS: u64 = 1 << 36;
const LONG: usize = ((LONGEST_NS.ilog2() - EXACT_NS.ilog2()) as usize) << STEP_BITS;

/// Counts times: those below [`EXACT_NS`] exactly, those up to a minute to within 0.1 %, longer
/// ones together. Least, largest and mean are exact.
///
/// All memory is allocated and touched at creation; recording only counts.
#[derive(Clone, Debug)]
pub struct Recorder {
    short: Box<[u64; SHORT]>,
    long: Box<[u64]>,
    long_min_ns: u64,
    long_max_ns: u64,
    long_sum_ns: u128,
}

impl Recorder {
    /// An empty recorder.
    pub fn new() -> Self {
        let (mut short, mut long) = (Box::new([1; SHORT]), vec![1; LONG].into_boxed_slice());
        // Fresh memory may be a promise that the system keeps at the first write: write now.
        black_box(&mut short).fill(0);
        black_box(&mut long).fill(0);
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

    #[inline]
    fn record_long(&mut self, ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.long[long_index(ns)] += count;
        self.long_min_ns = self.long_min_ns.min(ns);
        self.long_max_ns = self.long_max_ns.max(ns);
        self.long_sum_ns += u128::from(ns) * u128::from(count);
    }

    /// Counts all that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        let add = |counts: &mut [u64], more: &[u64]| {
            counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
        };
        add(&mut self.short[..], &other.short[..]);
        add(&mut self.long, &other.long);
        self.long_min_ns = self.long_min_ns.min(other.long_min_ns);
        self.long_max_ns = self.long_max_ns.max(other.long_max_ns);
        self.long_sum_ns += other.long_sum_ns;
    }

    /// Number of recorded times. Sums all counters: for the end of a run.
    pub fn samples(&self) -> u64 {
        self.short.iter().chain(&self.long).sum()
    }

    /// The distribution; none if nothing was counted.
    pub fn distribution(&self) -> Option<Distribution> {
        let buckets = self.buckets();
        let (first, last) = (buckets.first()?, buckets.last()?);
        // The least of the short times is its bucket; that of long ones is not.
        let min_ns = first.0.min(self.long_min_ns);
        let max_ns = last.0;
        let short = (0..).zip(self.short.iter());
        let short_sum = short.map(|(ns, count): (u128, _)| ns * u128::from(*count));
        let sum_ns = short_sum.sum::<u128>() + self.long_sum_ns;
        Some(Distribution::new(buckets, min_ns, max_ns, sum_ns))
    }

    /// Times and counts, ascending; each time is the longest of those counted there.
    fn buckets(&self) -> Vec<(u64, u64)> {
        let short = (0..).zip(self.short.iter().copied());
        let long = (0..).map(long_bound).zip(self.long.iter().copied());
        let mut buckets: Vec<_> = short.chain(long).filter(|(_, count)| *count > 0).collect();
        // The last one's bound may lie above the largest time, or (beyond all) below it.
        if let Some((bound, _)) = buckets.last_mut().filter(|_| self.long_max_ns > 0) {
            *bound = self.long_max_ns;
        }
        buckets
    }
}

/// The counter of a time of [`EXACT_NS`] or more.
#[inline(always)]
const fn long_index(ns: u64) -> usize {
    let shift = ns.ilog2() - STEP_BITS;
    // The highest bit of the shifted time adds one doubling.
    let index = (((shift - FIRST_SHIFT) as u64) << STEP_BITS) + (ns >> shift) - (1 << STEP_BITS);
    if index < LONG as u64 { index as usize } else { LONG - 1 }
}

/// The longest time of a counter.
const fn long_bound(index: u64) -> u64 {
    let shift = (index >> STEP_BITS) + FIRST_SHIFT as u64;
    let steps = index % (1 << STEP_BITS) + (1 << STEP_BITS);
    ((steps + 1) << shift) - 1
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
