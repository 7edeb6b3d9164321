//! A warm stream takes no memory: neither the publisher's path nor the subscriber's allocates,
//! between processes and between threads, however either side waits.

use allocation_counter::measure;
use lanecast_base::WaitStrategy;
use lanecast_shm::{Domain, DomainSettings, SlowConsumerPolicy, Visibility};
use lanecast_transport::{Batch, Claim, Event, Publish, Run, Subscribe, TopicId, Transport};
use tempfile::TempDir;

/// The smallest window, so that the messages go around it many times.
const WINDOW_BYTES: u64 = 64 << 10;
/// Messages of a round, by each of the three ways to send one.
const EACH: usize = 4;

/// Sends a round by every way that there is: in place, copied, and several at once.
fn publish(publisher: &mut impl Publish, topic: TopicId, number: usize) {
    for part in 0..EACH {
        let mut claim =
            publisher.try_claim_on(topic, 1 + (number * 7 + part) % 1000).expect("room");
        claim.fill(1);
        claim.commit();
        publisher.try_send_on(topic, &[2; 100]).expect("room");
    }
    let mut batch = publisher.batch();
    for _ in 0..EACH {
        batch.try_add(topic, 64).expect("room").fill(3);
    }
    batch.publish();
}

/// Reads a round, by polls and by runs in turn.
fn read(subscriber: &mut impl Subscribe) {
    let mut missing = 3 * EACH;
    let mut by_run = false;
    while missing > 0 {
        let handler = |event: Event<'_>| match event {
            Event::Message(message) => missing -= usize::from(!message.bytes().is_empty()),
            Event::Lost(gap) => panic!("lost {gap:?}"),
            _ => {}
        };
        by_run = !by_run;
        let work = if by_run {
            let run = subscriber.take(5);
            run.iter().map(handler).count()
        } else {
            subscriber.poll(5, handler)
        };
        subscriber.wait(work);
    }
}

/// Allocations of both sides during this many rounds, on two topics of one session.
fn taken<C: Transport>(transport: &C) -> (u64, u64) {
    let mut publisher = transport.publisher("prices").expect("a publisher");
    let trades = publisher.add_topic("trades").expect("a second topic");
    let mut subscriber = transport.subscriber(&["prices", "trades"]).expect("a subscriber");
    assert!(
        publisher.wait_for_subscribers(1, std::time::Duration::from_secs(60)),
        "no subscriber came"
    );
    let mut taken = (0, 0);
    for number in 0..1500 {
        let topic = if number % 2 == 0 { TopicId::FIRST } else { trades };
        let published = measure(|| publish(&mut publisher, topic, number));
        let read = measure(|| {
            read(&mut subscriber);
            if number % 500 == 0 {
                // Nothing to read: it waits as long as it ever does.
                subscriber.wait(0);
            }
        });
        // The first rounds warm up.
        if number >= 200 {
            taken = (taken.0 + published.count_total, taken.1 + read.count_total);
        }
    }
    taken
}

fn domain(directory: &TempDir, settings: DomainSettings) -> Domain {
    let directory = directory.path().join("domain");
    Domain::open(DomainSettings { directory, window_bytes: WINDOW_BYTES, ..settings })
        .expect("a domain")
}

#[test]
fn a_warm_transport_takes_no_memory() {
    assert!(measure(|| drop(vec![1])).count_total > 0, "the counter counts");
    for wait in WaitStrategy::ALL {
        let waits = || DomainSettings {
            publisher_wait: wait,
            subscriber_wait: wait,
            ..DomainSettings::default()
        };
        let between_processes = DomainSettings { local_join: false, ..waits() };
        let between_threads = DomainSettings { visibility: Visibility::Process, ..waits() };
        let slow_consumer = SlowConsumerPolicy::EvictAfter(std::time::Duration::from_secs(60));
        let evicting = DomainSettings { slow_consumer, ..waits() };
        for (way, settings) in [
            ("processes", between_processes),
            ("both", waits()),
            ("threads", between_threads),
            ("evicting", evicting),
        ] {
            let directory = TempDir::new_in("/dev/shm").expect("a directory");
            let taken = taken(&domain(&directory, settings));
            assert_eq!(taken, (0, 0), "{way}, {wait}: publisher, subscriber");
        }
    }
}
