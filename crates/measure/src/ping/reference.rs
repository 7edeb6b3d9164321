//! Reference figures of the UM latency document.

use serde::Serialize;

/// Reference figures of two hosts with 10 Gb cards: round trips from the actual time of sending.
/// Another machine: for orientation, not for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Reference {
    /// The set-up.
    pub name: &'static str,
    /// The shortest round trip.
    pub min_ns: u64,
    /// The average.
    pub mean_ns: f64,
    /// 90th percentile, to the microsecond.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p99_9_ns: u64,
    /// 99.99th percentile.
    pub p99_99_ns: u64,
    /// 99.999th percentile; none if overflows of the histogram hide it.
    pub p99_999_ns: Option<u64>,
    /// The longest.
    pub max_ns: u64,
    /// Most messages due at one reading of the clock.
    pub largest_burst: u64,
}

/// The document's load: bytes, messages, messages a second.
pub const DOCUMENT_SIZE: usize = 24;
/// Number of messages in the document.
pub const DOCUMENT_MESSAGES: u64 = 500_000;
/// Messages a second in the document.
pub const DOCUMENT_RATE: u64 = 50_000;

const STREAMING: [Reference; 3] = [
    Reference {
        name: "kernel driver",
        min_ns: 19_991,
        mean_ns: 24_134.0,
        p90_ns: 25_000,
        p99_ns: 34_000,
        p99_9_ns: 51_000,
        p99_99_ns: 83_000,
        p99_999_ns: Some(113_000),
        max_ns: 115_171,
        largest_burst: 6,
    },
    Reference {
        name: "Onload",
        min_ns: 8746,
        mean_ns: 10_138.0,
        p90_ns: 10_000,
        p99_ns: 12_000,
        p99_9_ns: 21_000,
        p99_99_ns: 25_000,
        p99_999_ns: Some(26_000),
        max_ns: 27_440,
        largest_burst: 1,
    },
    Reference {
        name: "kernel driver, Java",
        min_ns: 20_789,
        mean_ns: 23_552.0,
        p90_ns: 25_000,
        p99_ns: 34_000,
        p99_9_ns: 56_000,
        p99_99_ns: 128_000,
        p99_999_ns: None,
        max_ns: 528_731,
        largest_burst: 5,
    },
];

impl Reference {
    /// The document's figures for messages of `size` bytes at `rate` a second; empty for other
    /// loads.
    pub fn of(size: usize, rate: u64) -> &'static [Self] {
        if (size, rate) == (DOCUMENT_SIZE, DOCUMENT_RATE) { &STREAMING } else { &[] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_speaks_of_one_load() {
        let names = |size, rate| Reference::of(size, rate).iter().map(|one| one.name);
        assert_eq!(
            names(24, 50_000).collect::<Vec<_>>(),
            ["kernel driver", "Onload", "kernel driver, Java"]
        );
        assert_eq!(names(24, 50_001).count() + names(25, 50_000).count(), 0);
        for one in &STREAMING {
            let rising = [one.p90_ns, one.p99_ns, one.p99_9_ns, one.p99_99_ns];
            assert!(rising.is_sorted() && one.min_ns < one.p90_ns, "{one:?}");
            assert!(one.p99_999_ns.is_none_or(|ns| ns >= one.p99_99_ns && ns <= one.max_ns));
        }
    }
}
