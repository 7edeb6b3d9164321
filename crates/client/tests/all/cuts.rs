//! A client that publishes and one that listens through a wire that is cut again and again, at any
//! byte: each message comes to a subscriber exactly once.

use crate::test_server::{Served, Wire};
use lanecast_client::{Client, Event, Identity, Reconnect, Settings, State};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const MESSAGES: u64 = 3_000;
const ROUNDS: u64 = 300;
const RECORDS: u64 = 20;
const PATIENCE: Duration = Duration::from_secs(60);

fn settings(server: &str, name: &str) -> Settings {
    let identity = Identity { name: name.to_owned(), ..Identity::default() };
    let delay_min = Duration::from_millis(1);
    let reconnect = Some(Reconnect { delay_min, delay_max: 20 * delay_min });
    Settings { reconnect, patience: PATIENCE, ..Settings::new([server], identity) }
}

/// The last number in a message such as `{"id":7}`.
fn number(body: &[u8]) -> u64 {
    let text = std::str::from_utf8(body).expect("text");
    let digits = text.trim_end_matches('}').rsplit(':').next().expect("a field");
    digits.parse().expect("a number")
}

#[test]
fn each_message_comes_exactly_once_however_often_the_wire_is_cut() {
    let rounds = if std::env::var_os("LONG_TESTS").is_some() { 50 } else { 4 };
    for seed in 1..=rounds {
        let served = Served::new();
        let mut reader = Client::connect(&served.address(), &Identity::default()).expect("there");
        reader.subscribe("t", None).expect("a topic");
        let wire = Wire::new(&served.address(), seed, 40_000);
        let connected = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&connected);
        let settings = settings(&wire.address(), "desk").on_state(move |state| {
            if matches!(state, State::Connected { .. }) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut publisher = Client::connect_with(settings).expect("there");
        wire.begin_to_cut();
        for id in 0..MESSAGES {
            publisher.publish("t", format!(r#"{{"id":{id}}}"#).as_bytes()).expect("there is room");
            // What is published at once would go through in one piece.
            if id % 50 == 0 {
                publisher.flush().expect("the server comes back");
            }
        }
        publisher.flush().expect("all are there");
        for id in 0..MESSAGES {
            let event = reader.next(Some(PATIENCE)).expect("connected").expect("it comes");
            let Event::Message(message) = event else { panic!("{event:?}") };
            assert_eq!(number(&message.body), id, "seed {seed}");
        }
        assert!(wire.cuts() > 3, "seed {seed}: it was cut {} times only", wire.cuts());
        assert!(connected.load(Ordering::Relaxed) > 3, "seed {seed}: and told so");
    }
}

#[test]
fn a_table_is_right_again_after_each_break_and_a_break_is_told() {
    let served = Served::new();
    let mut publisher = Client::connect(&served.address(), &Identity::default()).expect("there");
    let wire = Wire::new(&served.address(), 99, 4_000);
    let mut reader = Client::connect_with(settings(&wire.address(), "")).expect("there");
    let (question, wishes) = Default::default();
    reader.query_and_subscribe("stock", &question, &wishes).expect("it is kept");
    let mut table: BTreeMap<u64, u64> = BTreeMap::new();
    let mut resumed = 0;
    wire.begin_to_cut();
    for round in 1..=ROUNDS {
        let body = format!(r#"{{"id":{},"round":{round}}}"#, round % RECORDS);
        publisher.publish("stock", body.as_bytes()).expect("connected");
        publisher.flush().expect("connected");
        let until = Instant::now() + PATIENCE;
        while table.values().max() != Some(&round) {
            assert!(Instant::now() < until, "record {round} does not come");
            match reader.next(Some(Duration::from_millis(50))).expect("it comes back") {
                Some(Event::Record { record, .. }) => {
                    table.insert(record.key, number(&record.body));
                }
                Some(Event::Message(message)) => {
                    table.insert(message.key.expect("a record"), number(&message.body));
                }
                Some(Event::Resumed { .. }) => {
                    table.clear();
                    resumed += 1;
                }
                Some(Event::Current { .. }) | None => {}
                Some(other) => panic!("{other:?}"),
            }
        }
    }
    wire.cut_no_more();
    // The last thing that was told may be from the middle of the records.
    let until = Instant::now() + PATIENCE;
    while table.len() < RECORDS as usize {
        assert!(Instant::now() < until, "only {} records", table.len());
        if let Some(Event::Record { record, .. }) =
            reader.next(Some(Duration::from_millis(50))).expect("connected")
        {
            table.insert(record.key, number(&record.body));
        }
    }
    let numbers: BTreeSet<u64> = table.into_values().collect();
    assert!(numbers.into_iter().eq(ROUNDS - RECORDS + 1..=ROUNDS));
    assert!(resumed > 3, "resumed {resumed} times only");
}
