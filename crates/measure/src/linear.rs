//! The histogram that the documents' latency tools print: buckets of equal width.

use crate::number::parse_number;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// The most buckets: 8 bytes each.
const MOST_BUCKETS: u64 = 10_000_000;

/// The reported percentiles, each in per cent and in 100,000ths.
const PERCENTILES: [(f64, u32); 5] =
    [(90.0, 90_000), (99.0, 99_000), (99.9, 99_900), (99.99, 99_990), (99.999, 99_999)];

/// Number and width of buckets: `-H buckets,ns_per_bucket`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearShape {
    pub(crate) buckets: usize,
    pub(crate) width_ns: u64,
}

impl LinearShape {
    /// A shape of `buckets` buckets of `width_ns` each; none for 0 or too many.
    pub fn new(buckets: u64, width_ns: u64) -> Option<Self> {
        let fits = (1..=MOST_BUCKETS).contains(&buckets) && width_ns > 0;
        let buckets = usize::try_from(buckets).ok().filter(|_| fits)?;
        // The last bucket's upper edge is a time that can be printed with a sign.
        let edge = (buckets as u64).checked_mul(width_ns)?;
        i64::try_from(edge).is_ok().then_some(Self { buckets, width_ns })
    }
}

impl FromStr for LinearShape {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{text}': write buckets,ns_per_bucket such as 300,1000 \
                 (1 to {MOST_BUCKETS} buckets of 1 ns or more)"
            )
        };
        let (buckets, width_ns) = text.split_once(',').ok_or_else(wrong)?;
        let buckets = parse_number(buckets).map_err(|_| wrong())?;
        Self::new(buckets, parse_number(width_ns).map_err(|_| wrong())?).ok_or_else(wrong)
    }
}

impl fmt::Display for LinearShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.buckets, self.width_ns)
    }
}

/// A histogram of equal-width buckets; longer times are overflows. All memory is allocated and
/// touched at creation.
#[derive(Clone, Debug)]
pub struct Linear {
    shape: LinearShape,
    counts: Vec<u64>,
    overflows: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
}

impl Linear {
    /// An empty histogram.
    pub fn new(shape: LinearShape) -> Self {
        let mut counts = vec![1; shape.buckets];
        std::hint::black_box(&mut counts).fill(0);
        Self { shape, counts, overflows: 0, min_ns: u64::MAX, max_ns: 0, sum_ns: 0 }
    }

    /// Counts one time.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let bucket = usize::try_from(ns / self.shape.width_ns).ok();
        match bucket.and_then(|bucket| self.counts.get_mut(bucket)) {
            Some(count) => *count += 1,
            None => self.overflows += 1,
        }
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns += u128::from(ns);
    }

    /// Counts all that `other`, which is of the same shape, counted.
    ///
    /// # Panics
    /// If it is of another shape.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.shape, other.shape, "histograms of different shapes do not add up");
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.overflows += other.overflows;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
    }

    /// The result; all zero if nothing was counted.
    pub fn result(&self) -> LinearResult {
        let samples = self.counts.iter().sum::<u64>() + self.overflows;
        LinearResult {
            buckets: self.shape.buckets,
            width_ns: self.shape.width_ns,
            counts: self.counts.clone(),
            overflows: self.overflows,
            min_ns: if samples == 0 { 0 } else { self.min_ns },
            max_ns: self.max_ns,
            mean_ns: self.sum_ns as f64 / samples.max(1) as f64,
            samples,
            percentiles: PERCENTILES
                .map(|(per_cent, in_100_000)| (per_cent, self.percentile(samples, in_100_000))),
        }
    }

    /// The documents' rule: the upper edge of the first bucket with which at least the share is
    /// reached. Where the overflows are needed for that, −1: of 500,000 samples, five overflows
    /// leave 99.999 per cent known, and six hide it.
    fn percentile(&self, samples: u64, in_100_000: u32) -> i64 {
        if samples == 0 {
            return -1;
        }
        let share = u128::from(samples) * u128::from(in_100_000);
        let mut reached = 0;
        let bucket = self.counts.iter().position(|count| {
            reached += u128::from(*count);
            reached * 100_000 >= share
        });
        let edge = |bucket| (bucket as u64 + 1).saturating_mul(self.shape.width_ns);
        bucket.and_then(|bucket| i64::try_from(edge(bucket)).ok()).unwrap_or(-1)
    }
}

/// Result of a linear histogram.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinearResult {
    /// Number of buckets.
    pub buckets: usize,
    /// Width of each bucket.
    pub width_ns: u64,
    /// The samples in each.
    pub counts: Vec<u64>,
    /// The samples beyond the last.
    pub overflows: u64,
    /// The shortest time.
    pub min_ns: u64,
    /// The longest, with overflows.
    pub max_ns: u64,
    /// The average, with overflows.
    pub mean_ns: f64,
    /// All samples.
    pub samples: u64,
    /// Pairs `(per cent, ns)`: at least that percentage of samples lies below `ns`; −1 if overflows
    /// hide it.
    pub percentiles: [(f64, i64); 5],
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(shape: (u64, u64), times: impl IntoIterator<Item = u64>) -> LinearResult {
        let mut linear = Linear::new(LinearShape::new(shape.0, shape.1).unwrap());
        times.into_iter().for_each(|ns| linear.record(ns));
        linear.result()
    }

    #[test]
    fn more_than_five_overflows_of_five_hundred_thousand_hide_the_last_percentile() {
        let with = |overflows: u64| {
            counted((300, 1000), (0..500_000).map(|i| if i < overflows { 300_000 } else { 24_100 }))
        };
        let hidden = with(6);
        assert_eq!((hidden.overflows, hidden.samples), (6, 500_000));
        assert_eq!(hidden.percentiles[4], (99.999, -1));
        assert_eq!(hidden.percentiles[3], (99.99, 25_000), "the bucket's upper edge");
        assert_eq!(with(5).percentiles[4], (99.999, 25_000));
        // The document's example in Java has 18, which hide one percentile and no more.
        assert_eq!(with(18).percentiles.map(|(_, ns)| ns), [25_000, 25_000, 25_000, 25_000, -1]);
    }

    #[test]
    fn the_share_is_enough_and_less_is_not() {
        // Nine of ten in the first bucket are 90 %.
        let found = counted((10, 100), (0..10).map(|i| if i < 9 { 0 } else { 555 }));
        assert_eq!(found.percentiles[0], (90.0, 100));
        assert_eq!(found.percentiles[1], (99.0, 600));
        // Of 9 samples, 90 % are 8.1, for which 8 are too few.
        let found = counted((10, 100), (0..9).map(|i| if i < 8 { 0 } else { 555 }));
        assert_eq!(found.percentiles[0], (90.0, 600));
        let found = counted((10, 100), [0; 9]);
        assert_eq!(found.percentiles[0], (90.0, 100));
    }

    #[test]
    fn edges_and_sums() {
        let found = counted((2, 50), [0, 49, 50, 99, 100, u64::MAX]);
        assert_eq!((found.counts.as_slice(), found.overflows), (&[2, 2][..], 2));
        assert_eq!((found.min_ns, found.max_ns, found.samples), (0, u64::MAX, 6));
        let nothing = counted((2, 50), []);
        assert_eq!((nothing.min_ns, nothing.max_ns, nothing.mean_ns), (0, 0, 0.0));
        assert!(nothing.percentiles.iter().all(|(_, ns)| *ns == -1));
    }

    #[test]
    fn shapes_are_read_as_the_documents_write_them() {
        let shape: LinearShape = "300,1000".parse().unwrap();
        assert_eq!(
            (shape, shape.to_string()),
            (LinearShape::new(300, 1000).unwrap(), "300,1000".into())
        );
        assert_eq!("0x10,0x20".parse(), Ok(LinearShape::new(16, 32).unwrap()));
        for wrong in ["300", "0,1000", "300,0", "x,1", "1,x", "10000001,1", "2,0xffffffffffffffff"]
        {
            let error = wrong.parse::<LinearShape>().unwrap_err();
            assert!(error.contains("such as 300,1000"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn merging_is_recording_both(
            left in prop::collection::vec(0..5000u64, 0..100),
            right in prop::collection::vec(0..5000u64, 0..100),
            buckets in 1..60u64, width in 1..100u64,
        ) {
            let shape = LinearShape::new(buckets, width).unwrap();
            let (mut merged, mut other) = (Linear::new(shape), Linear::new(shape));
            left.iter().for_each(|ns| merged.record(*ns));
            right.iter().for_each(|ns| other.record(*ns));
            merged.merge(&other);
            let both = counted((buckets, width), left.into_iter().chain(right));
            prop_assert_eq!(merged.result(), both.clone());
            prop_assert_eq!(both.counts.iter().sum::<u64>() + both.overflows, both.samples);
        }
    }
}
