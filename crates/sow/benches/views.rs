//! Cost of a message from its bytes to a view: replace the record, evaluate a filter, retract the
//! old contribution, add the new one. A view without subscribers is not written.
#![forbid(unsafe_code)]

use criterion::{Criterion, Throughput, criterion_group};
use lanecast_filter::message_type::MessageType;
use lanecast_filter::{Filter, Plan};
use lanecast_sow::{Publication, Topic, TopicDefinition, View, ViewDefinition};
use std::hint::black_box;

const MESSAGES: usize = 1 << 18;

/// Sizes: one that fits into the caches, one that does not.
#[derive(Clone, Copy)]
struct Size {
    name: &'static str,
    records: u64,
    groups: u64,
}

const SIZES: [Size; 2] = [
    Size { name: "1 K records, 100 groups", records: 1_000, groups: 100 },
    Size { name: "100 K records, 10 K groups", records: 100_000, groups: 10_000 },
];

/// Message number `round`. Messages of one record differ and belong to one group.
fn message(round: u64, size: Size) -> Vec<u8> {
    let key = round.wrapping_mul(7_919) % size.records;
    let (quantity, price) = (1 + round % 5_000, 1_000 + round % 9_000);
    let symbols = size.groups / 10;
    let (symbol, customer) = (key % symbols, key / symbols % 10);
    let (whole, cents) = (price / 100, price % 100);
    let message =
        format!("35=D;11=c{customer};55=S{symbol};14={quantity};99={whole}.{cents:02};37={key};");
    message.replace(';', "\x01").into_bytes()
}

/// A filled topic, a filter and the messages to publish.
fn orders(size: Size) -> (Topic, Plan, Vec<Vec<u8>>) {
    let definition = TopicDefinition::new("orders", MessageType::Fix).key("/37").expect("a path");
    let mut topic = Topic::new(definition).expect("a topic");
    let filter = Filter::parse("/35 IN ('D', 'C') AND /14 >= 1").expect("a filter");
    let plan = topic.with_fields(|fields| Plan::new(&filter, fields)).expect("slots");
    let messages: Vec<Vec<u8>> = (0..MESSAGES as u64).map(|round| message(round, size)).collect();
    for bytes in &messages[..size.records as usize] {
        topic.publish(&Publication::of(bytes), 0).expect("it is taken");
    }
    (topic, plan, messages)
}

fn vwap(topic: &mut Topic, projection: &str) -> View {
    let definition = ViewDefinition::new("VWAP", MessageType::Nvfix, "orders")
        .project(&format!("/11 AS /customer, /55 AS /symbol, {projection}"))
        .group_by("/11, /55");
    let mut view = View::new(definition, &|_| Some(topic)).expect("a view");
    view.share_fields(topic).expect("room");
    write(&mut view);
    view
}

fn write(view: &mut View) {
    while let Some(change) = view.next_change(0) {
        black_box(change.expect("it is written").sequence);
    }
}

fn updates(criterion: &mut Criterion) {
    SIZES.iter().for_each(|size| updates_of(*size, criterion));
}

fn updates_of(size: Size, criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(size.name);
    group.throughput(Throughput::Elements(1));
    let (mut topic, plan, messages) = orders(size);
    let mut messages = messages.iter().cycle().map(|bytes| Publication::of(bytes));
    let mut next = || messages.next().expect("they never end");
    group.bench_function("no view", |bencher| {
        bencher.iter(|| {
            let change = topic.publish(&next(), 0).expect("it is taken");
            let after = change.after.expect("it is there");
            black_box(plan.matches(&after.message(&change.environment)))
        });
    });
    let exact = "sum(/14 * /99) / sum(/14) AS /vwap, count(/14) AS /count";
    let extremes = format!("{exact}, min(/99) AS /low, max(/99) AS /high");
    for (name, projection) in [("vwap, count", exact), ("vwap, count, min, max", &extremes)] {
        for batch in [1, 64, usize::MAX] {
            let mut view = vwap(&mut topic, projection);
            let mut since = 0;
            let when = match batch {
                usize::MAX => "not written".to_owned(),
                _ => format!("written after {batch}"),
            };
            group.bench_function(format!("{name}, {when}"), |bencher| {
                bencher.iter(|| {
                    let change = topic.publish(&next(), 0).expect("it is taken");
                    let after = change.after.expect("it is there");
                    if plan.matches(&after.message(&change.environment)) {
                        view.on_change(0, &change);
                    }
                    since += 1;
                    if since == batch {
                        since = 0;
                        write(&mut view);
                    }
                });
            });
        }
    }
}

criterion_group!(benches, updates);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}
