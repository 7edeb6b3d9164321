//! Messages per second against one filter and against many, read and matched.
//! `cargo bench -p lanecast-filter --bench matching`, or `-- --quick` for a look; a last argument
//! picks rows by name. A million subscriptions take about 1 GB of memory and some seconds to file.
#![forbid(unsafe_code)]

mod orders;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group};
use lanecast_filter::fields::FieldSet;
use lanecast_filter::interpreter::Environment;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Filter, Index, Message, Plan};
use orders::{Chance, Messages, orders};
use std::hint::black_box;

/// Half `symbol and minimum quantity`, a quarter `symbol and kind`, a quarter `one of three symbols
/// and quantity range`.
fn subscriptions(count: u32) -> impl Iterator<Item = String> {
    let mut chance = Chance(77);
    (0..count).map(move |_| match chance.below(4) {
        0 | 1 => format!("/55 = '{}' and /38 >= {}", chance.symbol(), 1 + chance.below(10_000)),
        2 => format!("/55 = '{}' and /35 in ('D','C')", chance.symbol()),
        _ => {
            let symbols = [chance.symbol(), chance.symbol(), chance.symbol()];
            format!("/55 in ('{}') and /38 >= 1000 and /38 < 6000", symbols.join("','"))
        }
    })
}

fn ranges(count: u32) -> impl Iterator<Item = String> {
    let mut chance = Chance(5);
    (0..count).map(move |_| {
        let low = chance.below(10_000_000) as f64 / 1_000.0;
        format!("/38 >= {low} and /38 < {}", low + 10.0)
    })
}

fn index_of(filters: impl Iterator<Item = String>) -> (Index, FieldSet) {
    let (mut index, mut fields) = (Index::new(), FieldSet::new(MessageType::Fix));
    for (id, text) in filters.enumerate() {
        let filter = Filter::parse(&text).expect("a filter");
        index.insert(id as u32, &filter, &mut fields).expect("room");
    }
    (index, fields)
}

/// Reads messages in turn and passes each to `see`.
fn read(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    fields: &FieldSet,
    messages: &Messages,
    mut see: impl FnMut(&Message<'_>),
) {
    let environment = Environment { topic: "orders", ..Environment::default() };
    let (mut reader, mut row) = (Reader::new(fields), Row::new());
    let mut turn = messages.cycle();
    group.throughput(Throughput::Elements(1));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            let bytes = turn.next().expect("messages");
            reader.read(black_box(bytes), &mut row).expect("a message");
            see(&Message { row: &row, bytes, environment: &environment });
        });
    });
}

/// One filter, and a reader for its fields only.
fn one(criterion: &mut Criterion) {
    let orders = orders();
    let mut group = criterion.benchmark_group("one filter");
    let mut fields = FieldSet::new(MessageType::Fix);
    for tag in ["/35", "/55", "/38"] {
        fields.slot(&tag.parse().expect("a path")).expect("room");
    }
    read(&mut group, "none, 3 fields read", &fields, &orders, |message| {
        black_box(message.row);
    });
    for text in [
        "/55 = 'S00001' and /35 in ('D','C')",
        "/55 = 'S00001' and /38 >= 5000",
        "/38 >= 5000 and /44 < 50.00",
        "/55 like '^S0.*1$'",
        "/38 * /44 > 100000",
    ] {
        let mut fields = FieldSet::new(MessageType::Fix);
        let filter = Filter::parse(text).expect("a filter");
        let plan = Plan::new(&filter, &mut fields).expect("room");
        read(&mut group, text, &fields, &orders, |message| {
            black_box(plan.matches(message));
        });
    }
}

/// Whether the command line selects the row `name`; building an index of a million filters takes
/// long.
fn is_asked_for(name: &str) -> bool {
    let last = std::env::args().next_back().filter(|part| !part.starts_with('-'));
    last.is_none_or(|part| name.contains(&part) || part.contains("matching"))
}

fn match_all(criterion: &mut Criterion, name: &str, index: impl Fn() -> (Index, FieldSet)) {
    if !is_asked_for(&format!("many filters/{name}")) {
        return;
    }
    let (orders, (index, fields)) = (orders(), index());
    let mut group = criterion.benchmark_group("many filters");
    let mut ids = Vec::new();
    read(&mut group, name, &fields, &orders, |message| {
        index.matches(message, &mut ids);
        black_box(&ids);
    });
}

fn many(criterion: &mut Criterion) {
    for count in [1, 50, 1_000, 100_000, 1_000_000] {
        match_all(criterion, &format!("{count} subscriptions"), || index_of(subscriptions(count)));
    }
    match_all(criterion, "100000 pure ranges", || index_of(ranges(100_000)));
}

/// Messages of 1 KB, with five predicates on fields spread over them; as many as fit the L2 cache,
/// where a received message would be.
fn large(criterion: &mut Criterion) {
    let mut chance = Chance(9);
    let mut messages = Messages::default();
    for _ in 0..1_024 {
        let mut fields: Vec<_> =
            (1..=95).map(|tag| (tag, format!("value{:03}", chance.below(500)))).collect();
        fields.extend([(96, chance.below(100).to_string()), (97, "x".to_owned())]);
        messages.push(fields);
    }
    let text = "/5 <> 'a' and /25 <> 'b' and /50 not in ('value001','value002') \
                and /75 > 'value' and /96 >= 10";
    let mut fields = FieldSet::new(MessageType::Fix);
    let plan = Plan::new(&Filter::parse(text).expect("a filter"), &mut fields).expect("room");
    let mut group = criterion.benchmark_group("large message");
    read(&mut group, "1 KB, 5 predicates", &fields, &messages, |message| {
        black_box(plan.matches(message));
    });
}

/// Insertion and removal of one subscription in a large index.
fn changes(criterion: &mut Criterion) {
    if !is_asked_for("changes") {
        return;
    }
    let mut group = criterion.benchmark_group("changes");
    let (mut index, mut fields) = index_of(subscriptions(100_000));
    let filters: Vec<Filter> = subscriptions(101_000)
        .skip(100_000)
        .map(|text| Filter::parse(&text).expect("a filter"))
        .collect();
    let mut turn = filters.iter().cycle();
    group.bench_function("insert and remove beside 100000", |bencher| {
        bencher.iter(|| {
            let filter = turn.next().expect("filters");
            index.insert(100_000, filter, &mut fields).expect("room");
            index.remove(100_000, &mut fields)
        });
    });
    let text = "/55 = 'S00001' and /35 in ('D','C')";
    group.bench_function("parse", |bencher| bencher.iter(|| Filter::parse(black_box(text))));
}

criterion_group!(benches, one, many, large, changes);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}
