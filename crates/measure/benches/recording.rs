//! Benchmarks of the tools' own work for a message: reading the clock, and recording.
//!
//! `message` is what a subscriber does with each stamped message: an ordered reading of the clock
//! and both latencies. `short` ones lie below 4096 ns, `long` ones above.
#![forbid(unsafe_code)]

use criterion::{Criterion, criterion_group};
use lanecast_base::clock::Clock;
use lanecast_measure::{LatencyRecorder, Linear, Recorder};
use std::hint::black_box;

/// Differences between one latency and the next, so that they do not all hit one counter.
const SPREAD: u64 = 512;
/// Ages of messages, in ticks of the clock.
const AGES: [(&str, u64); 2] = [("short", 300), ("long", 1_000_000)];

fn clock(criterion: &mut Criterion) {
    let clock = Clock::host();
    let mut group = criterion.benchmark_group("clock");
    group.bench_function("ticks", |bencher| bencher.iter(|| clock.ticks()));
    group.bench_function("ticks_ordered", |bencher| bencher.iter(|| clock.ticks_ordered()));
    group.finish();
}

fn message(criterion: &mut Criterion) {
    let clock = Clock::host();
    let mut group = criterion.benchmark_group("message");
    for (name, age) in AGES {
        let mut latency = LatencyRecorder::default();
        let (mut now, mut index) = (clock.ticks(), 0);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                index += 37;
                let actual = now.saturating_sub(age + index % SPREAD);
                let (actual, intended) = black_box((actual, actual - 20));
                now = clock.ticks_ordered();
                let ns = |sent| clock.ns(now.saturating_sub(sent));
                latency.record(ns(actual), ns(intended));
            });
        });
    }
    group.finish();
}

fn recorders(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("record");
    for (name, age) in AGES {
        let (mut recorder, mut index) = (Recorder::new(), 0);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                index += 37;
                recorder.record(black_box(age + index % SPREAD));
            });
        });
    }
    let mut linear = Linear::new("300,1000".parse().expect("a shape"));
    let mut index = 0;
    group.bench_function("linear", |bencher| {
        bencher.iter(|| {
            index += 37;
            linear.record(black_box(300 + index % SPREAD));
        });
    });
    group.finish();
}

criterion_group!(recording, clock, message, recorders);

fn main() {
    recording();
    Criterion::default().configure_from_args().final_summary();
}
