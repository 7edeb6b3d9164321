//! Persistence over any transport: stores, publishers and durable subscribers keep their promises
//! whatever carries their frames.
//!
//! Each case runs its stores on threads of their own, with their data in a temporary directory.
//!
//! - `events`: cases about the events of stores
//! - `stage`: stores, a publisher and a subscriber

mod events;
mod stage;

use crate::Body;
use crate::record::PATIENCE;
pub use events::{
    a_publisher_that_another_takes_over_from_is_told, a_range_ends_in_front_of_its_end,
    a_store_that_is_lost_and_back_is_told, messages_that_retention_took_are_told_to_both_ends,
    stores_that_are_waited_for_are_named,
};
use lanecast_store::{
    Acknowledgement, DurableOptions, Pacing, ReceiverEvent, ReceiverStart, SourceEvent,
};
use lanecast_transport::{Publish, Transport};
use stage::{NAP, SOURCE, Stores};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A subscriber that comes late gets everything, each message once and in order: first from the
/// stores, then live ones.
pub fn what_was_missed_is_recovered_and_live_messages_follow<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: std::fmt::Debug> + Clone + Send + 'static,
{
    let stores = Stores::new(transport, 1);
    let mut publisher = stores.publisher();
    let longest = publisher.publisher.longest_message();
    publisher.send_until(300, longest);
    publisher.until_stable();
    let mut reader = stores.reader(1);
    reader.longest = longest;
    reader.until(Some(&mut publisher), "the past", |it| it.has("Recovered"));
    assert_eq!((reader.joined, reader.recovered), (Some(0), 300));
    // The store has joined, and the reader joins.
    let deadline = Instant::now() + PATIENCE;
    while publisher.publisher.publisher().subscribers() < 2 {
        assert!(Instant::now() < deadline, "the reader does not join");
        publisher.publisher.poll(|_| {});
        let work = reader.poll();
        reader.subscriber.wait_at_most(work, NAP);
    }
    for end in 301..=400 {
        publisher.send_until(end, longest);
        reader.poll();
    }
    reader.until(Some(&mut publisher), "the rest", |it| it.next == 400);
    assert!(reader.recovered < 400, "none was live");
}

/// A subscriber goes on behind the last message that it has acknowledged, in its next life.
pub fn a_subscriber_goes_on_where_it_had_come_to<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: std::fmt::Debug> + Clone + Send + 'static,
{
    let stores = Stores::new(transport, 3);
    let mut publisher = stores.publisher();
    publisher.send_until(100, 100);
    let explicit =
        |options: &mut DurableOptions| options.acknowledgement = Acknowledgement::Explicit;
    let mut reader = stores.reader_with(1, explicit);
    reader.longest = 100;
    reader.until(Some(&mut publisher), "all", |it| it.next == 100);
    reader.subscriber.acknowledge(SOURCE, 59);
    reader.until(Some(&mut publisher), "acknowledged", |it| {
        it.has("Acknowledged { source: 7, next: 60 }")
    });
    drop(reader);
    publisher.send_until(150, 100);
    let mut reader = stores.reader(1);
    reader.longest = 100;
    reader.until(Some(&mut publisher), "the rest", |it| it.next == 150);
    assert_eq!(reader.joined, Some(60));
    assert!(reader.has("is_resumed: true"), "{:?}", reader.events);
    reader.until(Some(&mut publisher), "acknowledged", |it| {
        it.has("Acknowledged { source: 7, next: 150 }")
    });
    drop(reader);
    // A replay begins where it is told to, and takes nothing back.
    for (start, first) in [(30, 30), (1_000, 150)] {
        let mut reader = stores.reader_with(1, |options| {
            options.settings.start = ReceiverStart::Sequence(start);
            options.settings.is_replay = true;
        });
        reader.longest = 100;
        reader.until(Some(&mut publisher), "the replay", |it| it.next == 150);
        assert_eq!(reader.joined, Some(first));
    }
    let mut reader = stores.reader(1);
    reader.until(Some(&mut publisher), "joined", |it| it.joined.is_some());
    assert_eq!(reader.joined, Some(150));
}

/// Sequences go on over a publisher's restarts, and a subscriber is told when it leaves. Streams
/// of a publisher that is gone are found all the same.
pub fn numbers_go_on_after_a_publisher_restarts<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: std::fmt::Debug> + Clone + Send + 'static,
{
    let stores = Stores::new(transport, 1);
    let mut publisher = stores.publisher();
    publisher.send_until(100, 100);
    publisher.until_stable();
    let mut reader = stores.reader(1);
    reader.longest = 100;
    reader.until(Some(&mut publisher), "all", |it| it.next == 100);
    drop(publisher);
    reader.until(None, "the publisher leaves", |it| it.has("Left { source: 7, next: 100 }"));
    let mut late = stores.reader(2);
    late.longest = 100;
    late.until(None, "the stream of a publisher that is gone", |it| it.next == 100);
    let mut publisher = stores.publisher();
    publisher.send_until(200, 100);
    assert!(publisher.events.contains(&SourceEvent::Registered { next: 100 }));
    for reader in [&mut reader, &mut late] {
        reader.until(Some(&mut publisher), "its next run", |it| it.next == 200);
    }
}

/// A majority of stores is enough; one that was away copies what it missed, messages of any length,
/// and a subscriber is served when only that one and another are left.
pub fn a_store_that_was_away_copies_what_it_missed<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: std::fmt::Debug> + Clone + Send + 'static,
{
    let mut stores = Stores::new(transport, 3);
    let mut publisher = stores.publisher();
    let longest = publisher.publisher.longest_message();
    publisher.send_until(20, longest);
    publisher.until_stable();
    stores.stop(0);
    publisher.send_until(120, longest);
    publisher.until_stable();
    stores.start(0);
    publisher.send_until(140, longest);
    publisher.until_stable();
    // The first store counts again only when it has everything.
    stores.stop(1);
    publisher.send_until(160, longest);
    publisher.until_stable();
    stores.stop(2);
    stores.start(1);
    publisher.until_stable();
    let mut reader = stores.reader(1);
    reader.longest = longest;
    reader.until(Some(&mut publisher), "everything", |it| it.next == 160);
    assert_eq!(reader.joined, Some(0));
}

/// Registered receivers hold a publisher back, and it learns when there is room again.
pub fn receivers_pace_a_publisher<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: std::fmt::Debug> + Clone + Send + 'static,
{
    let stores = Stores::new(transport, 1);
    let mut publisher = stores.publisher_with(|options| {
        let settings = &mut options.settings;
        (settings.pacing, settings.unconsumed_messages) = (Pacing::Receivers, 20);
    });
    let explicit =
        |options: &mut DurableOptions| options.acknowledgement = Acknowledgement::Explicit;
    publisher.send_until(1, 100);
    let mut reader = stores.reader_with(1, explicit);
    reader.longest = 100;
    reader.until(Some(&mut publisher), "registered", |it| it.has("Recovered"));
    // The publisher learns of the receiver with the next state.
    reader.subscriber.acknowledge(SOURCE, 0);
    reader.until(Some(&mut publisher), "acknowledged", |it| {
        it.has("Acknowledged { source: 7, next: 1 }")
    });
    publisher.until("consumed", |it| it.publisher.consumed() == 1);
    publisher.send_until(21, 100);
    let refused = publisher.publisher.try_send(b"more").expect_err("held back");
    assert!(refused.may_pass(), "{refused}");
    publisher.until("told", |it| {
        let is_full = |event: &SourceEvent| {
            matches!(event, SourceEvent::FlightSize { is_exceeded: true, messages: 20 })
        };
        it.events.iter().any(is_full)
    });
    reader.until(Some(&mut publisher), "all", |it| it.next == 21);
    reader.subscriber.acknowledge(SOURCE, 10);
    reader.until(Some(&mut publisher), "acknowledged", |it| {
        it.has("Acknowledged { source: 7, next: 11 }")
    });
    publisher.until("room", |it| {
        let has_room = |event: &SourceEvent| {
            matches!(event, SourceEvent::FlightSize { is_exceeded: false, .. })
        };
        it.events.iter().any(has_room)
    });
    publisher.send_until(31, 100);
    reader.until(Some(&mut publisher), "the rest", |it| it.next == 31);
}

/// A loop that sleeps on the subscriber's descriptor misses nothing.
pub fn a_durable_subscriber_wakes_its_loop<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: std::fmt::Debug> + Clone + Send + 'static,
{
    let stores = Arc::new(Stores::new(transport, 1));
    let mut publisher = stores.publisher();
    publisher.send_until(10, 100);
    publisher.until_stable();
    let mut reader = stores.reader(1);
    reader.longest = 100;
    let writer = thread::spawn(move || {
        for end in 11..=100 {
            publisher.send_until(end, 100);
            publisher.until("a pause", |it| it.publisher.stable() == end);
        }
        publisher
    });
    let deadline = Instant::now() + PATIENCE;
    let epoll = lanecast_os::epoll::Epoll::new().expect("a set");
    epoll.add(reader.subscriber.wakeup().expect("a descriptor"), 0).expect("added");
    let mut ready = Vec::new();
    // Waits that a wake-up ended, and those that ended by their time with something to poll.
    let (mut wakeups, mut missed, mut is_missed) = (0, 0, false);
    while reader.next < 100 {
        assert!(Instant::now() < deadline, "asleep at {}: {:?}", reader.next, reader.events);
        let work = reader.poll();
        missed += usize::from(is_missed && work > 0);
        is_missed = false;
        if work == 0 {
            let due = Duration::from_millis(100);
            epoll.wait(Some(due), &mut ready).expect("a wait");
            is_missed = ready.is_empty();
            wakeups += usize::from(!is_missed);
        }
    }
    assert!(wakeups > missed, "{wakeups} wake-ups, and {missed} that did not come");
    drop(writer.join().expect("the writer"));
}

/// Runs of a durable subscriber: events that were not yielded come again, and those that were count
/// as consumed when the run is dropped.
pub fn a_run_of_messages_is_consumed_when_it_is_dropped<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: std::fmt::Debug> + Clone + Send + 'static,
{
    const YIELDED: usize = 5;
    let stores = Stores::new(transport, 1);
    let mut publisher = stores.publisher();
    publisher.send_until(60, 100);
    publisher.until_stable();
    let mut reader = stores.reader(1);
    let (mut next, deadline) = (0, Instant::now() + PATIENCE);
    while !(next == 120 && reader.subscriber.is_acknowledged()) {
        assert!(Instant::now() < deadline, "in vain: at {next}");
        // The second half comes live, or from the store.
        if next == 60 {
            publisher.send_until(120, 100);
        }
        publisher.publisher.poll(|_| {});
        let run = reader.subscriber.take(16);
        let events: Vec<ReceiverEvent<'_>> = run.iter().take(YIELDED).collect();
        let work = events.len();
        for event in &events {
            if let ReceiverEvent::Message(message) = event {
                assert_eq!((message.source(), message.sequence()), (SOURCE, next));
                Body::new(next, 100).check(message.bytes());
                next += 1;
            }
        }
        drop(events);
        drop(run);
        reader.subscriber.wait_at_most(work, NAP);
    }
    drop(reader);
    let mut reader = stores.reader(1);
    reader.until(Some(&mut publisher), "joined", |it| it.joined.is_some());
    assert_eq!(reader.joined, Some(120));
}

/// Makes a test of every case of persistence; the argument is a value that derefs to an unused
/// transport, whose handles are cloned for the threads of stores.
#[macro_export]
macro_rules! persistence_tests {
    ($stage:expr) => {
        $crate::persistence_tests! { @each $stage =>
            what_was_missed_is_recovered_and_live_messages_follow
            a_subscriber_goes_on_where_it_had_come_to
            numbers_go_on_after_a_publisher_restarts
            a_store_that_was_away_copies_what_it_missed
            receivers_pace_a_publisher
            a_durable_subscriber_wakes_its_loop
            a_run_of_messages_is_consumed_when_it_is_dropped
            a_store_that_is_lost_and_back_is_told
            stores_that_are_waited_for_are_named
            a_publisher_that_another_takes_over_from_is_told
            a_range_ends_in_front_of_its_end
            messages_that_retention_took_are_told_to_both_ends
        }
    };
    (@each $stage:expr => $($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                let stage = $stage;
                $crate::persistence::$case(&*stage);
            }
        )*
    };
}
