//! Subscriptions by pattern: matching topics join by themselves, and each once.

use crate::record::gather;
use crate::{Entry, Record};
use lanecast_transport::{Publish, Subscribe, TopicPattern, TopicSelection, Transport};
use std::collections::BTreeSet;

/// A subscriber to the topics that any of `patterns` matches, at most `topics_max`.
fn subscriber<C: Transport>(transport: &C, patterns: &[&str], topics_max: usize) -> C::Subscriber {
    let patterns = patterns.iter().map(|text| TopicPattern::wildcard(text).expect("a pattern"));
    let selection = TopicSelection::of_patterns(patterns.collect(), topics_max);
    transport.subscriber_of(&selection).expect("a subscriber")
}

fn topics_of(record: &Record) -> Vec<&str> {
    let mut topics: Vec<_> = record.joined().iter().map(|stream| &*stream.topic).collect();
    topics.sort_unstable();
    topics
}

/// Topics that exist, later ones and topics added to a running session join if they match; others
/// do not, and those of lanecast itself never do.
pub fn matching_topics_join_by_themselves<C: Transport>(transport: &C) {
    let mut early = transport.publisher("p.early").expect("a publisher");
    let _unwanted = transport.publisher("q.early").expect("a publisher");
    let _deeper = transport.publisher("p.early.deeper").expect("a publisher");
    let _internal = transport.publisher("_p.early").expect("a publisher");
    let _control = transport.publisher("p.early?filters").expect("a publisher");
    let mut feed = subscriber(transport, &["p.*", "*p.*"], 100);
    let mut late = transport.publisher("p.late").expect("a publisher");
    let mut record = Record::new();
    record.listen(&mut feed, |record| record.joined().len() == 2);
    let added = early.add_topic("p.added").expect("a topic");
    let _others = early.add_topic("q.added").expect("a topic");
    record.listen(&mut feed, |record| record.joined().len() == 3);
    gather(&mut early, 1);
    gather(&mut late, 1);
    early.send(b"early").expect("room");
    early.send_on(added, b"added").expect("room");
    late.send(b"late").expect("room");
    record.listen(&mut feed, |record| record.message_count() == 3);
    record.check_lives();
    assert_eq!(topics_of(&record), ["p.added", "p.early", "p.late"]);
    for entry in record.entries() {
        if let Entry::Message { topic, bytes, .. } = entry {
            assert_eq!(topic.as_bytes(), [b"p.", &bytes[..]].concat(), "events name the topic");
        }
    }
    assert_eq!(feed.streams(), 3);
}

/// A topic whose publisher ends leaves, and joins again with the next publisher.
pub fn topics_of_a_pattern_come_and_go<C: Transport>(transport: &C) {
    let mut feed = subscriber(transport, &["p.*"], 100);
    for round in 1..=3 {
        let mut publisher = transport.publisher("p.a").expect("a publisher");
        gather(&mut publisher, 1);
        publisher.send(&[round as u8]).expect("room");
        drop(publisher);
        let mut record = Record::new();
        record.listen(&mut feed, |record| !record.left().is_empty());
        record.check_lives();
        assert_eq!((record.messages(), record.joined().len()), (vec![&[round as u8][..]], 1));
    }
    assert_eq!(feed.streams(), 0);
}

/// Overlapping patterns subscribe to a topic once.
pub fn overlapping_patterns_are_one_subscription<C: Transport>(transport: &C) {
    let mut feed = subscriber(transport, &["p.*", "p.a*", "**", "p.a"], 100);
    let mut publisher = transport.publisher("p.a").expect("a publisher");
    gather(&mut publisher, 1);
    publisher.send(b"once").expect("room");
    publisher.send(b"end").expect("room");
    let mut record = Record::new();
    record.listen(&mut feed, |record| record.messages().last() == Some(&&b"end"[..]));
    assert_eq!(record.messages(), [&b"once"[..], b"end"]);
    assert_eq!((record.joined().len(), publisher.subscribers()), (1, 1));
}

/// A pattern has no more topics than its limit, and what it has goes on.
pub fn topics_of_a_pattern_are_limited<C: Transport>(transport: &C) {
    let mut feed = subscriber(transport, &["p.*"], 2);
    let mut publisher = transport.publisher("p.0").expect("a publisher");
    let more: Vec<_> =
        (1..6).map(|n| publisher.add_topic(&format!("p.{n}")).expect("a topic")).collect();
    gather(&mut publisher, 1);
    let mut record = Record::new();
    record.listen(&mut feed, |record| record.joined().len() == 2);
    for topic in more {
        publisher.send_on(topic, b"x").expect("room");
    }
    drop(publisher);
    record.listen(&mut feed, |record| record.left().len() == 2);
    record.check_lives();
    assert_eq!(record.joined().len(), 2);
    // What has ended makes room.
    let _next = transport.publisher("p.next").expect("a publisher");
    record.listen(&mut feed, |record| record.joined().len() == 3);
}

/// Runs, waits and the descriptor work with patterns as with names.
pub fn a_pattern_works_with_runs_and_the_descriptor<C: Transport>(transport: &C) {
    use lanecast_transport::{Event, Run};
    use std::os::fd::AsFd;

    let mut feed = subscriber(transport, &["p.*"], 100);
    let descriptor = feed.wakeup().expect("a descriptor").as_fd().try_clone_to_owned();
    assert!(descriptor.is_ok(), "it lives beside the subscriber");
    let mut publishers: Vec<_> =
        (0..3).map(|n| transport.publisher(&format!("p.{n}")).expect("a publisher")).collect();
    for publisher in &mut publishers {
        gather(publisher, 1);
        publisher.send(b"x").expect("room");
    }
    let (mut joined, mut messages) = (BTreeSet::new(), BTreeSet::new());
    let start = std::time::Instant::now();
    while messages.len() < 3 {
        assert!(start.elapsed() < crate::PATIENCE, "so far {joined:?} and {messages:?}");
        let run = feed.take(64);
        let mut work = 0;
        for event in run.iter() {
            work += 1;
            match event {
                Event::Joined(stream) => assert!(joined.insert(stream.topic.clone()), "twice"),
                Event::Message(message) => {
                    assert!(joined.contains(&message.stream().topic), "not joined");
                    assert!(messages.insert(message.stream().topic.clone()), "twice");
                }
                other => panic!("an event that nothing caused: {other:?}"),
            }
        }
        drop(run);
        feed.wait(work);
    }
    assert_eq!(joined, messages);
}
