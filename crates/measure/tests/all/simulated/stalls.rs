//! A stalled sender and a stalled receiver show up where they must, and nowhere else.

use super::experiment::{WARM_UP, play, record};
use super::tape::{READING_NS, Stall, TRANSIT_NS, Tape};
use lanecast_measure::{Distribution, PublisherResult, SubscriberResult};

const MESSAGES: usize = 20_000;
const STALL: Stall = Stall { number: WARM_UP + 5000, ns: 1_000_000 };
/// Messages that come due while one side stalls: one each microsecond, and the one that comes
/// due when it ends is hardly late.
const HELD_UP: u64 = 999;
/// Flags: none, the non-blocking call, the copying call.
const WAYS: [u8; 3] = [0, 2, 4];

fn run(
    burst: u64,
    bits: u8,
    sender: Option<Stall>,
    receiver: Option<Stall>,
) -> (PublisherResult, SubscriberResult, Tape) {
    let tape = Tape::new(MESSAGES + WARM_UP, sender, receiver);
    let sent = record(&tape, MESSAGES, burst, bits);
    let read = play(&tape);
    assert_eq!((sent.sent, sent.warmup), (MESSAGES as u64, WARM_UP as u64));
    assert!(read.figures.is_complete());
    assert_eq!(read.figures.received, (MESSAGES + WARM_UP) as u64);
    (sent, read, tape)
}

/// Samples of more than a microsecond: a stall's, in a run that is even otherwise.
fn late(found: &Distribution) -> u64 {
    found.buckets.iter().filter(|(ns, _)| *ns > 1000).map(|(_, count)| count).sum()
}

/// The longest time is the stall's (it begins somewhere in a microsecond), and so many messages
/// were late by it; clearing up takes some microseconds more.
fn shows_the_stall(found: &Distribution, of: &str) {
    let longest = STALL.ns - 1000..=STALL.ns + TRANSIT_NS + 10 * READING_NS;
    assert!(longest.contains(&found.max_ns), "{of}: {}", found.max_ns);
    assert!((HELD_UP..HELD_UP + 30).contains(&late(found)), "{of}: {}", late(found));
    assert!(found.p50_ns < 1000 && found.p99_9_ns > 500_000, "{of}: {found:?}");
}

fn shows_nothing(found: &Distribution, of: &str) {
    assert_eq!(late(found), 0, "{of}: {}", found.max_ns);
}

#[test]
fn a_quiet_run_has_no_late_message() {
    for bits in WAYS {
        let (sent, read, _) = run(1, bits, None, None);
        shows_nothing(&sent.lateness.unwrap(), "lateness");
        let latency = read.figures.latency.unwrap();
        shows_nothing(&latency.actual, "actual");
        shows_nothing(&latency.intended, "intended");
        assert_eq!(sent.largest_burst, 1);
        assert_eq!(sent.conditions.interference.longest_gap_ns, Some(READING_NS));
    }
}

#[test]
fn a_stalled_sender_shows_in_lateness_and_in_latency_from_the_intended_time() {
    for bits in WAYS {
        let (sent, read, _) = run(1, bits, Some(STALL), None);
        let lateness = sent.lateness.unwrap();
        shows_the_stall(&lateness, "lateness");
        let latency = read.figures.latency.unwrap();
        shows_the_stall(&latency.intended, "intended");
        shows_nothing(&latency.actual, "actual: the stall hides itself");
        assert!((1000..1020).contains(&sent.largest_burst), "{}", sent.largest_burst);
        // The rate asked for is kept all the same.
        assert!((sent.rate - 1e6).abs() < 1e3, "{}", sent.rate);
    }
}

#[test]
fn a_stalled_receiver_shows_in_both_latencies_and_not_at_the_sender() {
    let (sent, read, _) = run(1, 0, None, Some(STALL));
    shows_nothing(&sent.lateness.unwrap(), "lateness");
    let latency = read.figures.latency.unwrap();
    shows_the_stall(&latency.actual, "actual");
    shows_the_stall(&latency.intended, "intended");
    let linear = read.linear.unwrap();
    let beyond = latency.actual.buckets.iter().filter(|(ns, _)| *ns >= 100_000);
    let beyond: u64 = beyond.map(|(_, count)| count).sum();
    assert_eq!(linear.overflows, beyond, "the linear histogram ends at 100 µs");
    assert_eq!(linear.percentiles[4], (99.999, -1));
}

#[test]
fn a_stall_of_both_is_told_apart() {
    let receiver = Stall { number: WARM_UP + 15_000, ns: 500_000 };
    let (sent, read, _) = run(1, 0, Some(STALL), Some(receiver));
    let latency = read.figures.latency.unwrap();
    shows_the_stall(&sent.lateness.unwrap(), "lateness");
    assert!((499..530).contains(&late(&latency.actual)), "{}", late(&latency.actual));
    let both = late(&latency.intended);
    assert!((HELD_UP + 499..HELD_UP + 560).contains(&both), "{both}");
}

#[test]
fn messages_of_a_burst_wait_for_those_before_them() {
    let (sent, read, _) = run(50, 0, None, None);
    let latency = read.figures.latency.unwrap();
    assert_eq!((sent.burst, sent.largest_burst), (50, 50));
    // Each message costs a reading of the clock, so the last one of a burst leaves 49 later.
    let queued = 49 * READING_NS;
    assert!(latency.intended.max_ns >= TRANSIT_NS + queued, "{}", latency.intended.max_ns);
    assert!(latency.intended.max_ns - latency.intended.min_ns >= queued);
    assert!(latency.actual.max_ns - latency.actual.min_ns < queued, "{:?}", latency.actual);
    assert!((sent.rate - 1e6).abs() < 1e4, "on average the rate holds: {}", sent.rate);
}

#[test]
fn recorded_latencies_equal_those_of_the_messages() {
    let (sent, read, tape) = run(7, 0, Some(STALL), Some(Stall { number: 9000, ns: 123_456 }));
    let latency = read.figures.latency.unwrap();
    let of = |time: fn(u64, u64, u64) -> u64| {
        let written = tape.written();
        let times = written[WARM_UP..].iter().map(|message| {
            let (intended, actual) = message.stamps();
            time(intended, actual, message.read)
        });
        let mut sorted: Vec<u64> = times.collect();
        sorted.sort_unstable();
        sorted
    };
    agrees(&latency.actual, &of(|_, actual, read| read - actual));
    agrees(&latency.intended, &of(|intended, _, read| read - intended));
    agrees(&sent.lateness.unwrap(), &of(|intended, actual, _| actual - intended));
}

fn agrees(found: &Distribution, sorted: &[u64]) {
    let mean = sorted.iter().sum::<u64>() as f64 / sorted.len() as f64;
    assert_eq!((found.min_ns, found.max_ns), (sorted[0], sorted[sorted.len() - 1]));
    assert_eq!((found.samples, found.mean_ns), (sorted.len() as u64, mean));
    let (mut rest, mut exact) = (sorted, true);
    for (bound, count) in &found.buckets {
        let held = rest.partition_point(|ns| ns <= bound);
        assert_eq!(held as u64, *count, "up to {bound}");
        exact &= rest[held - 1] == *bound || rest[held - 1] >= lanecast_measure::EXACT_NS;
        rest = &rest[held..];
    }
    assert!(exact && rest.is_empty());
    for (found, share) in [(found.p50_ns, 0.5), (found.p99_ns, 0.99), (found.p99_99_ns, 0.9999)] {
        let rank = (sorted.len() as f64 * share).ceil() as usize;
        let exact = sorted[rank - 1];
        assert!(found >= exact && found as f64 <= exact as f64 * 1.001, "{share}: {found} {exact}");
    }
}
