//! Batches that are leaked instead of published or dropped.

use lanecast_shm::{Domain, DomainSettings, Visibility};
use lanecast_transport::{Batch, Event, Publish, Subscribe, Transport};
use std::mem::forget;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);

/// Topics, numbers and bytes of `count` messages, between which nothing is lost and no stream ends.
fn receive(subscriber: &mut impl Subscribe, count: usize) -> Vec<(String, u64, Vec<u8>)> {
    let (start, mut messages) = (Instant::now(), Vec::new());
    while messages.len() < count {
        assert!(start.elapsed() < LONG, "{messages:?}");
        let work = subscriber.poll(64, |event| match event {
            Event::Message(it) => {
                messages.push((it.stream().topic.to_string(), it.number(), it.bytes().to_vec()));
            }
            Event::Joined(_) => {}
            other => panic!("{other:?}"),
        });
        subscriber.wait(work);
    }
    messages
}

#[test]
fn a_leaked_batch_takes_no_numbers() {
    for (visibility, local_join) in
        [(Visibility::Process, true), (Visibility::Host, true), (Visibility::Host, false)]
    {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path().to_owned();
        let settings =
            DomainSettings { visibility, local_join, directory, ..DomainSettings::default() };
        let domain = Domain::open(settings).expect("a domain");
        let mut publisher = domain.publisher("a").expect("a publisher");
        let [a, b] = ["a", "b"].map(|name| publisher.add_topic(name).expect("a topic"));
        let mut subscriber = domain.subscriber(&["a", "b"]).expect("a subscriber");
        assert!(publisher.wait_for_subscribers(1, LONG));
        let stage = |publisher: &mut lanecast_shm::Publisher, publishes| {
            let mut batch = publisher.batch();
            for topic in [a, a, b] {
                batch.try_add(topic, 3).expect("room").copy_from_slice(b"all");
            }
            if publishes { assert_eq!(batch.publish(), 3) } else { forget(batch) }
        };
        let message =
            |topic: &str, number, bytes: &[u8]| (topic.to_owned(), number, bytes.to_vec());
        stage(&mut publisher, false);
        publisher.try_send_on(a, b"one").expect("room");
        stage(&mut publisher, false);
        stage(&mut publisher, true);
        stage(&mut publisher, false);
        publisher.try_send_on(b, b"end").expect("room");
        let wanted = [
            message("a", 0, b"one"),
            message("a", 1, b"all"),
            message("a", 2, b"all"),
            message("b", 0, b"all"),
            message("b", 1, b"end"),
        ];
        assert_eq!(receive(&mut subscriber, 5), wanted, "{visibility:?} {local_join}");
    }
}
