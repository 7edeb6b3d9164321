//! Reference figures of the SMX document and of the data set published with it.

use super::case::{Api, Case};
use serde::Serialize;

/// Reference figures of another machine: for orientation, not for comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Reference {
    /// Messages a second.
    pub rate: Option<f64>,
    /// The shortest latency (or reading of the clock).
    pub min_ns: Option<f64>,
    /// The average latency.
    pub mean_ns: Option<f64>,
    /// The longest interruption.
    pub max_ns: Option<f64>,
}

/// Highest rates by size: the document's table.
const SIZES: [(usize, f64); 11] = [
    (25, 19_819_051.0),
    (64, 17_475_337.0),
    (65, 24_240_992.0),
    (100, 33_013_389.0),
    (112, 32_984_303.0),
    (113, 75_251_854.0),
    (128, 75_500_906.0),
    (129, 17_599_110.0),
    (200, 15_776_588.0),
    (500, 14_548_092.0),
    (1500, 14_787_552.0),
];

/// Highest rates by size and empty iterations: the data set, but for 64 bytes and 4 iterations,
/// which is in the text.
const WORKLOAD: [(usize, u64, f64); 13] = [
    (25, 0, 30.7e6),
    (25, 1, 80.4e6),
    (25, 2, 75.4e6),
    (25, 4, 67.5e6),
    (64, 0, 18.7e6),
    (64, 2, 22.2e6),
    (64, 4, 79_966_851.0),
    (64, 6, 53.6e6),
    (100, 0, 42.8e6),
    (100, 2, 47.3e6),
    (100, 4, 69.3e6),
    (100, 6, 67.2e6),
    (100, 8, 56.0e6),
];

/// A receiver of 10 000 empty iterations, 128 bytes: the text.
const SLOW: (usize, u64, f64) = (128, 10_000, 73_989.8);

/// Size, rate, shortest and average latency: the document's table.
const LATENCY: [(usize, u64, f64, f64); 12] = [
    (100, 250_000, 128.0, 156.0),
    (100, 1_000_000, 95.0, 155.0),
    (100, 5_000_000, 85.0, 152.0),
    (100, 10_000_000, 67.0, 143.0),
    (500, 250_000, 94.0, 158.0),
    (500, 1_000_000, 84.0, 154.0),
    (500, 5_000_000, 70.0, 152.0),
    (500, 10_000_000, 70.0, 147.0),
    (1500, 250_000, 107.0, 157.0),
    (1500, 1_000_000, 95.0, 157.0),
    (1500, 5_000_000, 70.0, 152.0),
    (1500, 10_000_000, 70.0, 163.0),
];

/// Highest rates of the copying call by size: the data set.
const GENERIC: [(usize, f64); 4] = [(25, 12.2e6), (128, 10.2e6), (129, 9.5e6), (1500, 6.9e6)];

/// Highest rates to two and three receivers by size: the data set.
const RECEIVERS: [(usize, f64, f64); 5] = [
    (25, 14.4e6, 12.8e6),
    (100, 18.0e6, 16.0e6),
    (200, 12.7e6, 11.6e6),
    (500, 12.1e6, 11.0e6),
    (1500, 11.9e6, 11.4e6),
];

/// Highest rates across nodes by size: the data set.
const NUMA: [(usize, f64); 4] = [(25, 5.6e6), (128, 7.6e6), (129, 6.2e6), (1500, 4.0e6)];

impl Reference {
    /// The interruptions that the document's jitter test saw.
    pub const JITTER: Self =
        Self { rate: None, min_ns: Some(12.0), mean_ns: None, max_ns: Some(365_127.0) };

    /// The figures of `case`, if there are any.
    pub fn of(case: &Case) -> Option<Self> {
        if case.is_paced() {
            return latency(case);
        }
        let rate = match *case {
            Case { cross_numa: true, receivers: 1, api: Api::Claim, fast: true, size, .. } => {
                by_size(&NUMA, size)
            }
            Case { cross_numa: true, .. } => None,
            Case { api: Api::Generic, receivers: 1, fast: true, size, .. } => {
                by_size(&GENERIC, size)
            }
            Case { api: Api::Generic, .. } => None,
            Case { receivers: 2, fast: true, size, .. } => {
                row(&RECEIVERS, |row| row.0 == size).map(|row| row.1)
            }
            Case { receivers: 3, fast: true, size, .. } => {
                row(&RECEIVERS, |row| row.0 == size).map(|row| row.2)
            }
            Case { receivers: 1, fast: true, size, .. } => by_size(&SIZES, size),
            Case { receivers: 1, fast: false, size, spin, .. } => workload(size, spin),
            _ => None,
        };
        rate.map(|rate| Self { rate: Some(rate), ..Self::default() })
    }
}

fn row<T: Copy>(table: &[T], is_it: impl Fn(&T) -> bool) -> Option<T> {
    table.iter().copied().find(is_it)
}

fn by_size(table: &[(usize, f64)], size: usize) -> Option<f64> {
    row(table, |row| row.0 == size).map(|row| row.1)
}

fn workload(size: usize, spin: u64) -> Option<f64> {
    let found = row(&WORKLOAD, |row| (row.0, row.1) == (size, spin)).map(|row| row.2);
    found.or_else(|| ((size, spin) == (SLOW.0, SLOW.1)).then_some(SLOW.2))
}

fn latency(case: &Case) -> Option<Reference> {
    if *case != Case::paced(case.size, case.rate_asked) {
        return None;
    }
    let (_, _, min, mean) = row(&LATENCY, |row| (row.0, row.1) == (case.size, case.rate_asked))?;
    Some(Reference { min_ns: Some(min), mean_ns: Some(mean), ..Reference::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(case: Case) -> Option<f64> {
        Reference::of(&case).and_then(|reference| reference.rate)
    }

    #[test]
    fn each_table_is_found_by_its_own_cases() {
        assert_eq!(rate(Case::flat_out(113)), Some(75_251_854.0));
        assert_eq!(rate(Case::flat_out(114)), None);
        assert_eq!(rate(Case::working(64, 4)), Some(79_966_851.0));
        assert_eq!(rate(Case::working(128, 10_000)), Some(73_989.8));
        assert_eq!(rate(Case::flat_out(128).copying()), Some(10.2e6));
        assert_eq!(rate(Case::flat_out(500).with_receivers(3)), Some(11.0e6));
        assert_eq!(rate(Case::flat_out(500).with_receivers(4)), None);
        assert_eq!(rate(Case::flat_out(1500).across_nodes()), Some(4.0e6));
        assert_eq!(rate(Case::flat_out(1500).across_nodes().with_receivers(2)), None);
    }

    #[test]
    fn latencies_are_those_of_one_receiver_on_the_same_node() {
        let reference = Reference::of(&Case::paced(1500, 10_000_000)).unwrap();
        assert_eq!((reference.min_ns, reference.mean_ns), (Some(70.0), Some(163.0)));
        assert_eq!(Reference::of(&Case::paced(100, 250_000).with_receivers(2)), None);
        assert_eq!(Reference::of(&Case::paced(100, 250_000).across_nodes()), None);
    }
}
