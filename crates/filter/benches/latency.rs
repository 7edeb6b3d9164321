//! Latency distribution of reading and filtering single messages, and how
//! many go through in a second. `cargo bench -p lanecast-filter --bench latency`.
//!
//! Each message is timed for itself, so the clock is read twice for each. What that costs is
//! measured in the same run and printed beside: the figures contain it.
#![forbid(unsafe_code)]

mod orders;

use lanecast_base::clock::Clock;
use lanecast_filter::fields::FieldSet;
use lanecast_filter::interpreter::Environment;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Filter, Message, Plan};
use orders::{Messages, orders};
use std::hint::black_box;
use std::time::Instant;

/// Rounds; the median counts. 2.| No order has this field, so the reader scans to the end.
const ROUNDS: usize = 5;
const MESSAGES: usize = 400_000;

const FILTERS: [&str; 3] = [
    "/55 = 'S00001' and /35 in ('D','C')",
    "/55 = 'S00001' and /38 >= 5000",
    "/38 >= 5000 and /44 < 50.00 and /59 = '0'",
];

fn main() {
    let (clock, orders) = (Clock::host(), orders());
    let bare = distribution(&clock, &orders, |_| {});
    println!("FIX orders of ten fields, read and filtered; ns; median of {ROUNDS} rounds");
    println!(
        "{:<45} p50 {:>4} p99 {:>4} p99.9 {:>5}",
        "the clock alone", bare[0], bare[1], bare[2]
    );
    for text in FILTERS {
        let mut fields = FieldSet::new(MessageType::Fix);
        let plan = Plan::new(&Filter::parse(text).expect("a filter"), &mut fields).expect("room");
        // A field that no order has: so each is read to its end.
        fields.slot(&"/9999".parse().expect("a path")).expect("room");
        let (mut reader, mut row) = (Reader::new(&fields), Row::new());
        let environment = Environment { topic: "orders", ..Environment::default() };
        let mut look = |bytes: &[u8]| {
            reader.read(black_box(bytes), &mut row).expect("a message");
            black_box(plan.matches(&Message { row: &row, bytes, environment: &environment }));
        };
        let [half, most, nearly] = distribution(&clock, &orders, &mut look);
        let mean = mean(&orders, &mut look);
        let rate = 1_000.0 / mean;
        println!(
            "{text:<45} p50 {half:>4} p99 {most:>4} p99.9 {nearly:>5}; \
             unclocked {mean:.1}, {rate:.1} M/s"
        );
    }
}

/// 50th, 99th and 99.9th percentile of nanoseconds per message, clock overhead included.
fn distribution(clock: &Clock, orders: &Messages, mut look: impl FnMut(&[u8])) -> [u64; 3] {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let mut times = Vec::with_capacity(MESSAGES);
        for bytes in orders.cycle().take(MESSAGES) {
            let start = clock.ticks_ordered();
            look(bytes);
            times.push(clock.ticks_ordered().wrapping_sub(start));
        }
        times.sort_unstable();
        rounds.push([500, 990, 999].map(|part| clock.ns(times[times.len() * part / 1_000])));
    }
    [0, 1, 2].map(|at| {
        let mut figures: Vec<u64> = rounds.iter().map(|round| round[at]).collect();
        figures.sort_unstable();
        figures[ROUNDS / 2]
    })
}

/// Mean nanoseconds per message of a round.
fn mean(orders: &Messages, mut look: impl FnMut(&[u8])) -> f64 {
    let mut figures: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            orders.cycle().take(MESSAGES).for_each(&mut look);
            start.elapsed().as_nanos() as f64 / MESSAGES as f64
        })
        .collect();
    figures.sort_unstable_by(f64::total_cmp);
    figures[ROUNDS / 2]
}
