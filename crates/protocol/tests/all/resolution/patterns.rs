//! Subscriptions by pattern: what is asked, what is answered, and what a flood may cost.

use super::network::{Network, address};
use super::*;
use crate::{announcement, entry};
use lanecast_protocol::{MILLISECOND, SECOND};
use lanecast_wire::net::{Frame, FrameWriter, Kind, adverts, query_flag};

/// A Query for `prefixes` arrives.
fn query(resolver: &mut Resolver, now: Nanos, prefixes: &[&str]) {
    let mut buffer = [0; 1_472];
    let flags = query_flag::PREFIXES;
    let mut writer = FrameWriter::new(&mut buffer, Kind::Query, flags, 99, 0);
    assert!(prefixes.iter().all(|prefix| writer.add_name(prefix)));
    let length = writer.finish();
    let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
    resolver.on_frame(now, address(9), &frame);
}

/// Names in the Adverts that the resolver sends until `end`, and the number of its frames.
fn advertised(resolver: &mut Resolver, mut now: Nanos, end: Nanos) -> (Vec<String>, usize) {
    let (mut buffer, mut topics, mut frames) = ([0; 1_472], Vec::new(), 0);
    while now < end {
        while let Some(length) = resolver.next_transmit(now, &mut buffer) {
            let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
            topics.extend(adverts(frame.body).flat_map(|(_, names)| names).map(str::to_owned));
            frames += 1;
        }
        now = resolver.next_deadline().unwrap_or(end).max(now + 1);
    }
    (topics, frames)
}

#[test]
fn ten_thousand_topics_of_a_pattern_are_found_within_a_second() {
    let mut network = Network::new(3, 7);
    for (index, session) in [(0, 1), (1, 2)] {
        for topic in 0..5_000 {
            let name = format!("prices.{index}.{topic}");
            network.resolvers[index].publish(announcement(session), &name).expect("a name");
        }
        network.resolvers[index].publish(announcement(session), "orders").expect("a name");
    }
    // Advertised rarely by now: only an answer brings them soon.
    network.run(90 * SECOND);
    network.resolvers[2].subscribe_pattern(1, &selection(&["prices.**"], 20_000));
    let all = |network: &Network| {
        network.found[2].values().map(|topics| topics.len()).sum::<usize>() == 10_000
    };
    assert!(network.run_until(SECOND, all), "all but {}", network.found[2].len());
    let before = network.resolvers[0].counters().bytes;
    network.run(5 * SECOND);
    let sent = network.resolvers[0].counters().bytes - before;
    assert!(sent < 2_000_000, "answers to three Queries, and no more: {sent} bytes");
}

#[test]
fn lost_answers_are_made_up_for() {
    for seed in 0..20 {
        let mut network = Network::new(2, seed);
        for topic in 0..500 {
            let name = format!("prices.{topic}");
            network.resolvers[0].publish(announcement(1), &name).expect("a name");
        }
        network.run(90 * SECOND);
        network.lost = 200;
        network.resolvers[1].subscribe_pattern(1, &selection(&["prices.*"], 1_000));
        let all = |network: &Network| network.found[1].values().any(|it| it.len() == 500);
        let is_whole = network.run_until(120 * SECOND, all);
        let found: Vec<_> = network.found[1].values().map(|topics| topics.len()).collect();
        assert!(is_whole, "seed {seed}: {found:?}");
    }
}

#[test]
fn only_a_prefix_is_asked_for_and_internal_topics_are_not_told() {
    let (mut it, start) = (resolver(1, SECOND), SECOND);
    for name in ["prices.eu", "prices.us", "orders", "_group.a"] {
        it.publish(announcement(SESSION), name).expect("a name");
    }
    advertised(&mut it, start, start + 90 * SECOND);
    let mut now = start + 91 * SECOND;
    for (asked, expected) in [
        ("prices.*", &["prices.eu", "prices.us"][..]),
        ("*", &["orders", "prices.eu", "prices.us"]),
        ("_group.*", &["_group.a"]),
        // Not a prefix: no star.
        ("prices.", &[]),
    ] {
        query(&mut it, now, &[asked]);
        let (mut topics, _) = advertised(&mut it, now, now + MILLISECOND);
        topics.sort_unstable();
        assert_eq!(topics, expected, "{asked}");
        now += 100 * MILLISECOND;
    }
}

#[test]
fn a_flood_of_queries_costs_an_answer_in_fifty_milliseconds() {
    let mut it = resolver(1, SECOND);
    for topic in 0..100 {
        it.publish(announcement(SESSION), &format!("p.{topic}")).expect("a name");
    }
    let mut now = 100 * SECOND;
    advertised(&mut it, SECOND, now);
    let mut told = 0;
    for _ in 0..10_000 {
        query(&mut it, now, &["p.*", "p.1*", "*"]);
        told += advertised(&mut it, now, now + 1).0.len();
        now += 100_000;
    }
    assert!(told <= 25 * 100, "{told} names in a second");
}

#[test]
fn one_address_cannot_use_up_the_topics_of_others() {
    let settings = ResolverSettings { resolver: 1, topics_max: 400, ..Default::default() };
    let mut it = Resolver::new(settings, SECOND);
    it.subscribe_pattern(1, &selection(&["**"], 1_000));
    let mut advert = |from: usize, session: u64, topic: &str| {
        let mut buffer = [0; 512];
        let mut writer = FrameWriter::new(&mut buffer, Kind::Advert, 0, from as u64 + 2, 0);
        let entry = entry(session, 0);
        let mut open = writer.add_entry(entry, topic.len()).expect("room");
        assert!(writer.add_entry_name(&mut open, topic));
        let length = writer.finish();
        let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
        it.on_frame(SECOND, address(from), &frame);
        events(&mut it).len()
    };
    let flooded: usize = (0..5_000).map(|n| advert(1, 1 + n % 50, &format!("f.{n}"))).sum();
    assert_eq!(flooded, 100, "a quarter");
    assert_eq!(advert(2, 1_000, "prices"), 1);
    assert_eq!(it.counters().overflowed, 4_900);
}

#[test]
fn a_pattern_has_no_more_topics_than_its_limit() {
    let mut it = resolver(1, SECOND);
    let wanted = selection(&["p.*"], 2);
    it.subscribe_pattern(1, &wanted);
    let mut admitted = wanted.admission();
    for topic in 0..5 {
        it.publish(announcement(SESSION), &format!("p.{topic}")).expect("a name");
        for event in events(&mut it) {
            let ResolverEvent::Found { topic, .. } = event else { panic!("found only") };
            assert!(admitted.admit(&topic));
        }
    }
    assert_eq!(wanted.admitted(), 2);
}

#[test]
fn names_and_patterns_of_one_process_overlap() {
    let mut it = resolver(1, SECOND);
    it.publish(announcement(SESSION), "p.a").expect("a name");
    it.subscribe_pattern(7, &selection(&["p.*"], 9));
    assert_eq!(events(&mut it).len(), 1);
    it.subscribe("p.a").expect("a name");
    assert_eq!(events(&mut it).len(), 1, "a further subscriber hears of it too");
    it.unsubscribe("p.a");
    it.publish(announcement(SESSION + 1), "p.a").expect("a name");
    assert_eq!(events(&mut it).len(), 1, "the pattern stays");
    it.unsubscribe_pattern(7);
    it.publish(announcement(SESSION + 2), "p.a").expect("a name");
    assert!(events(&mut it).is_empty());
    it.subscribe("p.a").expect("a name");
    assert_eq!(events(&mut it).len(), 3);
}
