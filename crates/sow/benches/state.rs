//! A topic of a million records: cost of changes, of a query beside a publisher, and of a restart.
//!
//! `cargo bench -p lanecast-sow --bench state`, with `-- --only changes|query|restart` for a part.
//! Beside other programs the query's figures vary, unless it is started with `chrt -f 10`: each run
//! stays below the second that real-time scheduling allows.
#![forbid(unsafe_code)]

use lanecast_filter::Filter;
use lanecast_filter::message_type::MessageType;
use lanecast_journal::{AppendError, Directory, JournalConfig};
use lanecast_sow::durable::{SowStore, WriteError};
use lanecast_sow::{
    Event, Publication, Query, SubscriptionOptions, SubscriptionSet, Topic, TopicDefinition,
};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const RECORDS: u64 = 1_000_000;
const CHANGES: u64 = 2_000_000;
/// Interval between messages at 500,000 per second.
const PACE: Duration = Duration::from_micros(2);
/// Most messages per run.
const PACED: u64 = 400_000;
/// Runs with and without a query.
const PAIRS: usize = 5;
/// Pause before each run, so that a real-time scheduler lets it run to its end.
const REST: Duration = Duration::from_secs(1);
/// Records per query step between two messages; steps repeat while there is time.
const SLICE: usize = 4;
const LONG: Duration = Duration::from_secs(60);

fn main() {
    let mut directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (mut arguments, mut only) = (std::env::args().skip(1), None);
    while let Some(argument) = arguments.next() {
        // Other options are those that cargo bench passes to every benchmark.
        match &*argument {
            "--directory" => directory = arguments.next().expect("--directory wants a path").into(),
            "--only" => only = Some(arguments.next().expect("--only wants the name of a part")),
            _ => {}
        }
    }
    let is_wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    if is_wanted("changes") {
        changes();
    }
    if is_wanted("query") {
        query_beside_publisher();
    }
    if is_wanted("restart") {
        restart(&directory);
    }
}

fn definition() -> TopicDefinition {
    TopicDefinition::new("orders", MessageType::Fix).key("/11").expect("a path")
}

/// A message of about 200 bytes in `buffer`.
fn message(buffer: &mut Vec<u8>, number: u64, version: u64) {
    use std::io::Write;
    buffer.clear();
    let (symbol, quantity) = (number % 5_000, (number ^ version) % 10_000);
    write!(
        buffer,
        "8=FIX.4.4\x0135=D\x0111=ORD{number:010}\x0155=SYM{symbol}\x0138={quantity}\x0154=1\x01\
         44=34.{version:06}\x0149=CLIENT{:04}\x0156=VENUE\x0160=20261121-12:00:00.000\x01\
         58=some words that a trader has typed for a later reader, or for none at all....\x01",
        number % 1_000,
    )
    .expect("memory");
}

fn filled() -> Topic {
    let (mut topic, mut buffer) = (Topic::new(definition()).expect("a topic"), Vec::new());
    for number in 0..RECORDS {
        message(&mut buffer, number, 0);
        topic.publish(&Publication::of(&buffer), 0).expect("taken");
    }
    topic
}

/// A random number, unpredictable for caches.
fn shuffled(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

/// Changes of existing records, each matched against the filters of 1,000 subscribers.
fn changes() {
    for (label, records) in [("1 K", 1_000), ("1 M", RECORDS)] {
        let (mut topic, mut feed) = (filled(), SubscriptionSet::new());
        for number in 0..1_000 {
            let text = format!("/55 = 'SYM{number}' AND /38 >= 5000");
            let filter = Filter::parse(&text).expect("a filter");
            feed.subscribe(&mut topic, Some(&filter), SubscriptionOptions::default())
                .expect("room");
        }
        let (mut buffer, mut told) = (Vec::new(), 0_u64);
        let mut sink = |ids: &[u32], _: Event<'_>| told += ids.len() as u64;
        let mut took = Duration::ZERO;
        for change in 0..CHANGES {
            message(&mut buffer, shuffled(change) % records, change);
            let start = Instant::now();
            let change = topic.publish(&Publication::of(&buffer), 0).expect("taken");
            feed.on_change(&change, 0, &mut sink);
            took += start.elapsed();
        }
        let each = took.as_nanos() as f64 / CHANGES as f64;
        println!("change one of {label} records, 1,000 filters: {each:.0} ns (told {told})");
    }
}

/// A publisher at a steady rate, alone and beside a query with a subscription, in turn.
fn query_beside_publisher() {
    let mut topic = filled();
    let (mut messages, mut buffer) = (Vec::new(), Vec::new());
    for change in 0..PACED {
        message(&mut buffer, shuffled(change) % RECORDS, change);
        messages.push(buffer.clone());
    }
    let mut ratios = Vec::new();
    for _ in 0..PAIRS {
        let [alone, beside] = [false, true].map(|asks| publish(&mut topic, &messages, asks));
        ratios.push(beside / alone);
        println!("p99 beside the query: {:.2} times that alone", beside / alone);
    }
    ratios.sort_by(f64::total_cmp);
    println!("median of {PAIRS} pairs: {:.2} times", ratios[PAIRS / 2]);
}

/// Publishes at a steady rate; returns the 99th percentile of the delay from due to delivered, in
/// nanoseconds.
fn publish(topic: &mut Topic, messages: &[Vec<u8>], asks: bool) -> f64 {
    let (mut feed, mut given) = (SubscriptionSet::new(), 0);
    let mut sink = |_: &[u32], event: Event<'_>| {
        if let Event::Records(records) = event {
            given += records.len();
        }
    };
    let query = Query::from(Filter::parse("/38 >= 5000").expect("a filter"));
    if asks {
        let options = SubscriptionOptions { batch: 100, ..SubscriptionOptions::default() };
        feed.query_and_subscribe(topic, &query, options, 0, &mut sink).expect("room");
    }
    std::thread::sleep(REST);
    let (mut late, mut took) = publish_at_pace(topic, messages, &mut feed, &mut sink);
    feed.unsubscribe(topic, 0);
    late.sort_unstable();
    took.sort_unstable();
    let at = |per_mille: usize| late[late.len() * per_mille / 1_000];
    let (half, nine, most, nearly) = (at(500), at(900), at(990), at(999));
    let (count, label) = (late.len(), if asks { "beside the query" } else { "alone" });
    let service = took[count / 2];
    println!(
        "publish {count}, {label}: p50 {half} ns, p90 {nine} ns, p99 {most} ns, p99.9 {nearly} \
         ns after each was due; p50 {service} ns after its turn came; {given} records given"
    );
    most as f64
}

/// Delays in nanoseconds: from due to delivered, and from start to delivered. Ends with the
/// answers.
fn publish_at_pace(
    topic: &mut Topic,
    messages: &[Vec<u8>],
    feed: &mut SubscriptionSet,
    sink: &mut impl lanecast_sow::Sink,
) -> (Vec<u64>, Vec<u64>) {
    // Written once, so that no page faults remain.
    let (mut late, mut took) = (vec![0; messages.len()], vec![0; messages.len()]);
    late.clear();
    took.clear();
    let (mut is_busy, asks) = (true, !feed.is_empty());
    let mut due = Instant::now();
    for message in messages {
        let mut start = Instant::now();
        while start < due {
            is_busy = feed.advance(topic, 0, SLICE, sink);
            start = Instant::now();
        }
        if asks && !is_busy {
            break;
        }
        let change = topic.publish(&Publication::of(message), 0).expect("taken");
        feed.on_change(&change, 0, sink);
        let end = Instant::now();
        late.push((end - due).as_nanos() as u64);
        took.push((end - start).as_nanos() as u64);
        due += PACE;
    }
    (late, took)
}

/// Opening a store with a checkpoint, and changes behind it of a tenth of the records.
fn restart(directory: &std::path::Path) {
    let place = tempfile::tempdir_in(directory).expect("a directory");
    let open = || {
        let storage = Directory::new(place.path());
        let opened = SowStore::open(storage, JournalConfig::default(), vec![definition()]);
        let (archive, mut topics) = opened.expect("opened");
        (archive, topics.remove(0))
    };
    let (mut archive, mut topic) = open();
    let fill = |archive: &mut SowStore<Directory>, topic: &mut Topic, count: u64, version| {
        let mut buffer = Vec::new();
        for number in 0..count {
            message(&mut buffer, number, version);
            while let Err(error) = archive.publish(topic, &Publication::of(&buffer), 0) {
                assert_eq!(error, WriteError::Append(AppendError::Full));
                std::thread::yield_now();
            }
        }
    };
    fill(&mut archive, &mut topic, RECORDS, 0);
    let start = Instant::now();
    let mut checkpoint = archive.begin_checkpoint().expect("begun");
    while checkpoint.advance(&[&topic], 10_000).expect("written") {}
    checkpoint.seal().expect("sealed");
    archive.install_checkpoint(checkpoint, LONG).expect("adopted");
    println!("checkpoint of {RECORDS} records: {:.2} s", start.elapsed().as_secs_f64());
    fill(&mut archive, &mut topic, RECORDS / 10, 1);
    drop((archive, topic));
    let start = Instant::now();
    let (_, topic) = open();
    assert_eq!(topic.len() as u64, RECORDS);
    println!("restart with {RECORDS} records: {:.2} s", start.elapsed().as_secs_f64());
}
