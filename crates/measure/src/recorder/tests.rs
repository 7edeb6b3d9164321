//! The recorder against sorting.

use super::*;
use proptest::prelude::*;

/// The least value that at least so many in a hundred thousand do not exceed.
fn oracle(sorted: &[u64], in_100_000: usize) -> u64 {
    let rank = (sorted.len() * in_100_000).div_ceil(100_000);
    sorted[rank - 1]
}

/// Exact below 4096 ns, within 0.1 % above.
fn close(found: u64, exact: u64) -> bool {
    found == exact || (exact >= EXACT_NS && found.abs_diff(exact) as f64 <= exact as f64 / 1000.0)
}

fn recorded(times: &[u64]) -> Recorder {
    let mut recorder = Recorder::new();
    times.iter().for_each(|&ns| recorder.record(ns));
    recorder
}

fn agrees(found: &Distribution, times: &[u64]) {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    assert_eq!(found.samples, times.len() as u64);
    assert_eq!((found.min_ns, found.max_ns), (sorted[0], *sorted.last().unwrap()));
    let sum: u128 = times.iter().map(|&ns| u128::from(ns)).sum();
    assert_eq!(found.mean_ns, sum as f64 / times.len() as f64, "exact, whatever the order");
    for (in_100_000, found) in [
        (50_000, found.p50_ns),
        (90_000, found.p90_ns),
        (99_000, found.p99_ns),
        (99_900, found.p99_9_ns),
        (99_990, found.p99_99_ns),
        (99_999, found.p99_999_ns),
    ] {
        let exact = oracle(&sorted, in_100_000);
        assert!(close(found, exact), "{in_100_000}: {found} is not {exact}");
    }
    buckets_agree(&found.buckets, &sorted);
}

/// Each bucket holds the samples up to its bound and above the bound before.
fn buckets_agree(buckets: &[(u64, u64)], sorted: &[u64]) {
    let mut rest = sorted;
    for &(bound, count) in buckets {
        assert!(count > 0, "no empty buckets");
        let held = rest.partition_point(|&ns| ns <= bound);
        assert_eq!(held as u64, count, "up to {bound}");
        assert!(close(bound, rest[held - 1]), "{bound} is no bound of {}", rest[held - 1]);
        rest = &rest[held..];
    }
    assert_eq!(rest, [] as [u64; 0], "the counts add up to the samples");
}

fn times() -> impl Strategy<Value = Vec<u64>> {
    let time = prop_oneof![
        8 => 0..2 * EXACT_NS,
        1 => 0..LONGEST_NS,
        1 => prop::sample::select(vec![EXACT_NS - 1, EXACT_NS, EXACT_NS + 1, LONGEST_NS]),
    ];
    prop::collection::vec(time, 1..400)
}

#[test]
fn percentiles_of_a_long_tail_agree_with_sorting() {
    // A cheap generator: mostly 100 to 227 ns, now and then up to some milliseconds.
    let mut state = 1u64;
    let times: Vec<u64> = (0..250_000)
        .map(|index| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let short = 100 + (state >> 57);
            if index % 997 == 0 { short + (state >> 42) } else { short }
        })
        .collect();
    agrees(&recorded(&times).distribution().unwrap(), &times);
}

/// The `hdrhistogram` crate, with the same precision, gives the same counters.
#[test]
fn counters_are_those_of_an_hdr_histogram() {
    let peer = hdrhistogram::Histogram::<u64>::new_with_bounds(1, LONGEST_NS - 1, 3).unwrap();
    let times = (12..36).flat_map(|bits| {
        let power = 1u64 << bits;
        [power, power + 1, power + power / 3, power + power / 2 - 1, 2 * power - 1]
    });
    for ns in times {
        let bound = long_bound(long_index(ns) as u64);
        assert_eq!(bound, peer.highest_equivalent(ns), "{ns}");
    }
    assert_eq!(long_index(EXACT_NS), 0);
    assert_eq!((long_index(LONGEST_NS - 1), long_index(u64::MAX)), (LONG - 1, LONG - 1));
}

#[test]
fn few_samples_agree_with_sorting() {
    for times in [&[7][..], &[3, 1, 2], &[0, 0, 5], &[EXACT_NS], &[5, 1_000_000_007]] {
        agrees(&recorded(times).distribution().unwrap(), times);
    }
}

#[test]
fn an_empty_recording_has_no_distribution() {
    assert_eq!(Recorder::new().distribution(), None);
    assert_eq!(Recorder::new().samples(), 0);
}

#[test]
fn beyond_the_bounds_is_counted_and_the_largest_is_exact() {
    let found = recorded(&[10 * LONGEST_NS, u64::MAX, 3]).distribution().unwrap();
    assert_eq!((found.samples, found.min_ns, found.max_ns), (3, 3, u64::MAX));
    assert_eq!(found.buckets, [(3, 1), (u64::MAX, 2)]);
}

#[test]
fn recording_many_is_recording_one_by_one() {
    let mut many = Recorder::new();
    for (ns, count) in [(100, 3), (9, 0), (70_000, 2), (80_000, 0)] {
        many.record_many(ns, count);
    }
    let single = recorded(&[100, 100, 100, 70_000, 70_000]);
    assert_eq!(many.distribution(), single.distribution());
}

proptest! {
    #[test]
    fn distributions_agree_with_sorting(times in times()) {
        agrees(&recorded(&times).distribution().unwrap(), &times);
    }

    #[test]
    fn merging_is_recording_both(left in times(), right in times()) {
        let mut merged = recorded(&left);
        merged.merge(&recorded(&right));
        let both: Vec<u64> = left.into_iter().chain(right).collect();
        prop_assert_eq!(merged.samples(), both.len() as u64);
        agrees(&merged.distribution().unwrap(), &both);
    }
}
