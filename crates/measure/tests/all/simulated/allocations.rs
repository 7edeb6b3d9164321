//! Nothing on a message's path takes memory: neither recording, nor anything else in the
//! experiments' loops.

use super::experiment::{WARM_UP, play, record};
use super::tape::Tape;
use allocation_counter::measure;
use lanecast_measure::{LatencyRecorder, Linear, Recorder};

/// Short and long times, below and above every bound of the recorders.
fn times() -> impl Iterator<Item = u64> {
    (0..64).map(|bits| u64::MAX >> bits).chain(0..10_000)
}

#[test]
fn recording_takes_no_memory() {
    let mut recorder = Recorder::new();
    let mut latency = LatencyRecorder::default();
    let mut linear = Linear::new("300,1000".parse().unwrap());
    let taken = measure(|| {
        for ns in times() {
            recorder.record(ns);
            latency.record(ns, ns.saturating_mul(3));
            linear.record(ns);
        }
    });
    assert_eq!((taken.count_total, taken.bytes_total), (0, 0));
    assert_eq!(recorder.samples(), 10_064);
    assert!(measure(|| drop(vec![1])).count_total > 0, "the counter counts");
}

/// Allocations of each side in a run of `messages`. The transport allocates nothing, and the run is
/// the same each microsecond, so the results are of one size.
fn taken(messages: usize, bits: u8) -> (u64, u64) {
    let tape = Tape::new(messages + WARM_UP, None, None);
    let publisher = measure(|| drop(record(&tape, messages, 1, bits)));
    let subscriber = measure(|| drop(play(&tape)));
    (publisher.count_total, subscriber.count_total)
}

#[test]
fn the_length_of_a_run_makes_no_difference() {
    for bits in [0, 2, 4] {
        // The first run calibrates clocks and fills what is kept for good.
        taken(10, bits);
        let (short, long) = (taken(5000, bits), taken(50_000, bits));
        // A doubt more or less, such as an interruption, is a text more or less.
        for (short, long) in [(short.0, long.0), (short.1, long.1)] {
            assert!(short.abs_diff(long) < 20, "flags {bits}: {short} {long}");
        }
    }
}
