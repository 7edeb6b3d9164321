//! Events of stores at publishers and subscribers: lost and back, waited for, taken over, ended,
//! and given up.

use super::stage::{Reader, SOURCE, Stores};
use crate::record::PATIENCE;
use lanecast_store::{
    DurableOptions, PersistentSendError, ReceiverEnd, ReceiverStart, SendRefusal, SourceEvent,
    StoreOptions,
};
use lanecast_transport::Transport;
use std::fmt::Debug;
use std::time::Instant;

/// Interval of requests, 20 ms in nanoseconds: a store that does not answer ten of them is lost.
const RETRY: u64 = 20_000_000;

/// A publisher and a subscriber are told of a store that ends, and of its return; messages go on
/// meanwhile.
pub fn a_store_that_is_lost_and_back_is_told<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: Debug> + Clone + Send + 'static,
{
    let mut stores = Stores::new(transport, 3);
    let mut publisher = stores.publisher_with(|options| options.settings.retry = RETRY);
    let mut reader = stores.reader_with(1, |options| options.settings.retry = RETRY);
    reader.longest = 100;
    publisher.send_until(10, 100);
    reader.until(Some(&mut publisher), "the first messages", |it| it.next == 10);
    stores.stop(1);
    let name = "store-1".to_owned();
    let lost = SourceEvent::StoreLost { store: name.clone() };
    publisher.until_told("a lost store", |event| *event == lost);
    let words = r#"StoreLost { store: "store-1" }"#;
    reader.until(Some(&mut publisher), "the same at the subscriber", |it| it.has(words));
    publisher.send_until(20, 100);
    publisher.until_stable();
    reader.until(Some(&mut publisher), "messages meanwhile", |it| it.next == 20);
    stores.start(1);
    let back = SourceEvent::StoreBack { store: name };
    publisher.until_told("a store that is back", |event| *event == back);
    let words = r#"StoreBack { store: "store-1" }"#;
    reader.until(Some(&mut publisher), "the same at the subscriber", |it| it.has(words));
}

/// A new stream waits for all of its stores, which are named at both ends as long as they do not
/// answer.
pub fn stores_that_are_waited_for_are_named<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: Debug> + Clone + Send + 'static,
{
    let mut stores = Stores::new(transport, 3);
    (0..2).for_each(|index| stores.stop(index));
    let mut publisher = stores.publisher();
    let mut reader = stores.reader(1);
    reader.longest = 100;
    let both = ["store-0", "store-1"].map(str::to_owned).to_vec();
    publisher.until_told(
        "silent stores",
        |event| matches!(event, SourceEvent::Waiting { silent, .. } if *silent == both),
    );
    let words = r#"Waiting { silent: ["store-0", "store-1"] }"#;
    reader.until(Some(&mut publisher), "the same at the subscriber", |it| it.has(words));
    assert!(!publisher.publisher.is_registered());
    stores.start(0);
    publisher.until_told(
        "one less",
        |event| matches!(event, SourceEvent::Waiting { silent, .. } if *silent == both[1..]),
    );
    stores.start(1);
    publisher.send_until(10, 100);
    publisher.until_stable();
    reader.until(Some(&mut publisher), "all", |it| it.next == 10);
    assert_eq!(reader.joined, Some(0));
}

/// The later one of two publishers with the same id goes on; the other is told, and sends no more.
pub fn a_publisher_that_another_takes_over_from_is_told<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: Debug> + Clone + Send + 'static,
{
    let stores = Stores::new(transport, 1);
    let mut first = stores.publisher();
    first.send_until(20, 100);
    first.until_stable();
    let mut second = stores.publisher();
    second.send_until(30, 100);
    second.until_stable();
    assert!(second.events.contains(&SourceEvent::Registered { next: 20 }), "{:?}", second.events);
    first.until_told("superseded", |event| matches!(event, SourceEvent::Superseded { .. }));
    let refused = first.publisher.try_send(b"late").expect_err("its run has ended");
    let is_it = matches!(refused, PersistentSendError::Refused(SendRefusal::Superseded));
    assert!(is_it && !refused.may_pass(), "{refused:?}");
    let mut reader = stores.reader(1);
    reader.longest = 100;
    reader.until(Some(&mut second), "both runs", |it| it.next == 30);
}

/// A subscriber with a start and an end gets the messages between them, from the stores or live,
/// and is told that no others come.
pub fn a_range_ends_in_front_of_its_end<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: Debug> + Clone + Send + 'static,
{
    let stores = Stores::new(transport, 1);
    let mut publisher = stores.publisher();
    publisher.send_until(100, 100);
    publisher.until_stable();
    let between = |start, end| {
        move |options: &mut DurableOptions| {
            options.settings.start = ReceiverStart::Sequence(start);
            options.settings.end = ReceiverEnd::Sequence(end);
        }
    };
    let mut past = stores.reader_with(1, between(20, 60));
    let mut future = stores.reader_with(2, between(90, 120));
    for reader in [&mut past, &mut future] {
        reader.longest = 100;
        reader.until(Some(&mut publisher), "the past", |it| it.next >= 60 && it.joined.is_some());
    }
    assert!(!future.subscriber.has_ended());
    publisher.send_until(150, 100);
    publisher.until_stable();
    future.until(Some(&mut publisher), "the end", |it| it.subscriber.has_ended());
    // Live messages behind the end come to both.
    publisher.send_until(160, 100);
    publisher.until_stable();
    let acknowledged = |it: &Reader<T>| it.subscriber.is_acknowledged();
    for (reader, start, end) in [(&mut past, 20, 60), (&mut future, 90, 120)] {
        let words = format!("Ended {{ source: {SOURCE}, next: {end} }}");
        reader.until(Some(&mut publisher), "the end is told", |it| it.has(&words));
        reader.until(Some(&mut publisher), "acknowledged", acknowledged);
        assert_eq!((reader.joined, reader.next), (Some(start), end), "{:?}", reader.events);
    }
}

/// Messages that retention takes before a registered subscriber has consumed them: the publisher is
/// told that this was forced, and the subscriber which it has lost.
pub fn messages_that_retention_took_are_told_to_both_ends<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: Debug> + Clone + Send + 'static,
{
    const SEGMENT: u64 = 64 << 10;
    let mut options = StoreOptions::default();
    options.journal.segment_bytes = SEGMENT;
    options.retention.bytes = Some(8 * SEGMENT);
    options.retention.unconsumed_bytes = 0;
    let stores = Stores::with_options(transport, 1, options);
    let mut publisher = stores.publisher();
    publisher.send_until(20, 100);
    let mut reader = stores.reader(1);
    reader.longest = 100;
    reader.until(Some(&mut publisher), "acknowledged", |it| {
        it.has("Acknowledged { source: 7, next: 20 }")
    });
    drop(reader);
    // More than the limit, until some of it is gone.
    let mut end = 20;
    let is_forced = |event: &SourceEvent| match event {
        SourceEvent::Reclaimed { first, is_forced } => *is_forced && *first > 20,
        _ => false,
    };
    let deadline = Instant::now() + PATIENCE;
    while !publisher.events.iter().any(is_forced) {
        assert!(Instant::now() < deadline, "nothing is given up: {:?}", publisher.events);
        end += 500;
        publisher.send_until(end, 100);
        publisher.until_stable();
    }
    let mut reader = stores.reader(1);
    reader.longest = 100;
    reader.until(Some(&mut publisher), "the rest", |it| it.next == end);
    assert_eq!(reader.joined, Some(20), "{:?}", reader.events);
    assert!(reader.has("Lost { source: 7, first: 20, count: "), "{:?}", reader.events);
    assert!(reader.has("why: Expired }") && reader.lost > 0, "{:?}", reader.events);
}
