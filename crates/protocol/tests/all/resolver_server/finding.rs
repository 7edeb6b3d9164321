//! Resolvers find publications by daemons, also across failures.

use super::cluster::Cluster;
use crate::{announcement, entry, split};
use lanecast_protocol::resolver_server::{ResolverServer, ResolverServerSettings};
use lanecast_protocol::{MILLISECOND, SECOND};
use lanecast_transport::{TopicPattern, TopicSelection};
use lanecast_wire::net::{FrameWriter, Kind, adverts, query_flag};
use std::collections::BTreeSet;

const S: u64 = 0x5e55;

fn publish(cluster: &mut Cluster, member: usize, session: u64, topic: &str) {
    cluster.members[member].resolver.publish(announcement(session), topic).expect("a name");
}

fn subscribe(cluster: &mut Cluster, member: usize, topic: &str) {
    cluster.members[member].resolver.subscribe(topic).expect("a name");
}

#[test]
fn a_topic_is_found_in_either_order_of_arrival() {
    let mut cluster = Cluster::new(1, 3, 1);
    publish(&mut cluster, 0, S, "early");
    subscribe(&mut cluster, 1, "early");
    subscribe(&mut cluster, 1, "late");
    cluster.run(SECOND);
    assert!(cluster.members[1].has(S, "early"));
    publish(&mut cluster, 2, S + 1, "late");
    subscribe(&mut cluster, 0, "late");
    subscribe(&mut cluster, 0, "early");
    cluster.run(10 * MILLISECOND);
    assert!(cluster.members[1].has(S + 1, "late") && cluster.members[0].has(S + 1, "late"));
    assert!(cluster.members[0].has(S, "early"), "its own");
    assert!(cluster.members[2].found.is_empty());
}

#[test]
fn clients_get_subscribed_topics_and_nothing_else() {
    let mut cluster = Cluster::new(1, 2, 2);
    for number in 0..1_000 {
        publish(&mut cluster, 0, S, &format!("topic {number}"));
    }
    subscribe(&mut cluster, 1, "topic 7");
    cluster.run(10 * SECOND);
    let resolver_server = cluster.daemons[0].as_ref().expect("up");
    assert_eq!(resolver_server.counters().sent, 1);
    assert_eq!(
        (resolver_server.topics(), resolver_server.sessions(), resolver_server.clients()),
        (1_001, 1, 2)
    );
    cluster.members[1].resolver.unsubscribe("topic 7");
    cluster.run(SECOND);
    assert_eq!(cluster.daemons[0].as_ref().expect("up").topics(), 1_000);
    cluster.members[0].resolver.unpublish(S);
    cluster.run(SECOND);
    let resolver_server = cluster.daemons[0].as_ref().expect("up");
    assert_eq!(
        (resolver_server.topics(), resolver_server.sessions(), resolver_server.counters().sent),
        (0, 0, 1)
    );
}

#[test]
fn a_prefix_is_answered_and_followed_until_it_is_withdrawn() {
    let mut cluster = Cluster::new(1, 2, 5);
    for number in 0..3_000 {
        publish(&mut cluster, 0, S, &format!("prices.{number}"));
        publish(&mut cluster, 0, S, &format!("orders.{number}"));
    }
    let pattern = |text: &str| {
        TopicSelection::of_patterns(vec![TopicPattern::wildcard(text).expect("valid")], 10_000)
    };
    cluster.members[1].resolver.subscribe_pattern(1, &pattern("prices.*"));
    cluster.run(10 * SECOND);
    assert_eq!(cluster.members[1].found[&S].len(), 3_000);
    assert_eq!(cluster.daemons[0].as_ref().expect("up").topics(), 6_001);
    publish(&mut cluster, 0, S + 1, "prices.late");
    publish(&mut cluster, 0, S + 1, "orders.late");
    cluster.run(SECOND);
    assert!(cluster.members[1].has(S + 1, "prices.late"));
    let sent = cluster.daemons[0].as_ref().expect("up").counters().sent;
    assert_eq!(sent, 3_001, "names without the prefix are not sent");
    cluster.members[1].resolver.unsubscribe_pattern(1);
    publish(&mut cluster, 0, S + 2, "prices.later");
    cluster.run(SECOND);
    assert!(!cluster.members[1].has(S + 2, "prices.later"));
    assert_eq!(cluster.daemons[0].as_ref().expect("up").topics(), 6_003);
}

#[test]
fn an_unspecified_address_is_where_the_connection_comes_from() {
    let mut resolver_server = ResolverServer::new(ResolverServerSettings::default(), 0);
    let publisher = resolver_server.connect(0, "10.0.0.7:99".parse().unwrap()).expect("room");
    let asker = resolver_server.connect(0, "10.0.0.8:99".parse().unwrap()).expect("room");
    let mut buffer = [0; 512];
    let mut writer = FrameWriter::new(&mut buffer, Kind::Advert, 0, 5, 0);
    let mut entry = writer.add_entry(entry(S, 0), 1).expect("room");
    assert!(writer.add_entry_name(&mut entry, "a"));
    let length = writer.finish();
    resolver_server.on_frame(0, publisher, &split(&buffer[..length]));
    let mut writer = FrameWriter::new(&mut buffer, Kind::Query, query_flag::ALL, 6, 0);
    assert!(writer.add_name("b"));
    let length = writer.finish();
    resolver_server.on_frame(0, asker, &split(&buffer[..length]));
    let length =
        resolver_server.next_frame(0, asker, &mut buffer).expect("all, though it is not wanted");
    let (told, topics) = adverts(split(&buffer[..length]).body).next().expect("an entry");
    assert_eq!(told.control(), "10.0.0.7:4000".parse().unwrap());
    assert_eq!(topics.collect::<Vec<_>>(), ["a"]);
    assert_eq!(resolver_server.next_frame(0, asker, &mut buffer), None, "once");
}

#[test]
fn ten_thousand_topics_are_found_at_once() {
    let mut cluster = Cluster::new(2, 2, 3);
    for number in 0..10_000 {
        publish(&mut cluster, 0, S + number % 4, &format!("prices.of.thing.{number}"));
        subscribe(&mut cluster, 1, &format!("prices.of.thing.{number}"));
    }
    let all =
        |cluster: &Cluster| cluster.members[1].found.values().map(BTreeSet::len).sum::<usize>();
    assert!(cluster.run_until(MILLISECOND, |cluster| all(cluster) == 10_000), "{}", all(&cluster));
    assert!(cluster.bytes < 2_500_000, "{}", cluster.bytes);
    cluster.bytes = 0;
    cluster.run(100 * SECOND);
    assert!(cluster.bytes < 25_000, "then silence, but for signs of life: {}", cluster.bytes);
}

#[test]
fn a_daemon_that_starts_anew_takes_nothing_away() {
    let mut cluster = Cluster::new(1, 3, 4);
    publish(&mut cluster, 0, S, "a");
    subscribe(&mut cluster, 1, "a");
    cluster.run(20 * SECOND);
    for pause in [0, 1, 20, 400] {
        cluster.kill(0);
        cluster.run(pause * SECOND);
        cluster.start(0);
        // A new subscriber finds it as soon as its publisher is back.
        subscribe(&mut cluster, 2, "a");
        let back = cluster.run_until(3 * SECOND, |cluster| cluster.members[2].has(S, "a"));
        assert!(back, "after {pause} s");
        cluster.run(10 * SECOND);
        cluster.members[2].resolver.unsubscribe("a");
        cluster.members[2].found.clear();
        assert!(cluster.members[1].has(S, "a") && cluster.members[1].gone == 0);
    }
}

#[test]
fn sources_that_ended_while_the_daemon_was_away_are_gone() {
    let mut cluster = Cluster::new(1, 2, 5);
    publish(&mut cluster, 0, S, "a");
    publish(&mut cluster, 0, S + 1, "a");
    subscribe(&mut cluster, 1, "a");
    cluster.run(20 * SECOND);
    cluster.kill(0);
    cluster.members[0].resolver.unpublish(S);
    cluster.run(SECOND);
    cluster.start(0);
    cluster.run(4 * SECOND);
    assert!(cluster.members[1].has(S, "a"), "its publisher may not be back yet");
    cluster.run(6 * SECOND);
    assert!(!cluster.members[1].has(S, "a") && cluster.members[1].has(S + 1, "a"));
    // The same while only the client was away.
    cluster.members[0].cut[0] = true;
    cluster.members[0].resolver.unpublish(S + 1);
    cluster.run(20 * SECOND);
    assert!(cluster.members[1].has(S + 1, "a"), "perhaps it lives");
    cluster.members[0].cut[0] = false;
    cluster.run(8 * SECOND);
    assert!(!cluster.members[1].has(S + 1, "a"));
}

#[test]
fn a_killed_publisher_is_kept_for_a_minute() {
    let mut cluster = Cluster::new(1, 2, 6);
    publish(&mut cluster, 0, S, "a");
    subscribe(&mut cluster, 1, "a");
    cluster.run(SECOND);
    cluster.replace(0);
    cluster.run(50 * SECOND);
    let watcher = |cluster: &Cluster| cluster.members.iter().filter(|it| it.has(S, "a")).count();
    assert_eq!(watcher(&cluster), 1, "perhaps it lives");
    cluster.run(15 * SECOND);
    assert_eq!(watcher(&cluster), 0);
    let resolver_server = cluster.daemons[0].as_ref().expect("up");
    assert_eq!((resolver_server.sessions(), resolver_server.counters().expired), (0, 1));
}

#[test]
fn of_two_daemons_one_is_enough() {
    let mut cluster = Cluster::new(2, 2, 7);
    publish(&mut cluster, 0, S, "a");
    subscribe(&mut cluster, 1, "a");
    cluster.run(SECOND);
    for (round, dead) in [0, 1, 0, 1].into_iter().enumerate() {
        cluster.kill(dead);
        let (session, topic) = (S + 1 + round as u64, format!("topic {round}"));
        publish(&mut cluster, 0, session, &topic);
        subscribe(&mut cluster, 1, &topic);
        let found = cluster.run_until(SECOND, |cluster| cluster.members[1].has(session, &topic));
        assert!(found, "round {round}");
        cluster.run(120 * SECOND);
        cluster.start(dead);
        cluster.run(10 * SECOND);
        assert!(cluster.members[1].has(S, "a") && cluster.members[1].gone == 0);
    }
    cluster.members[0].resolver.unpublish(S);
    cluster.run(SECOND);
    assert!(!cluster.members[1].has(S, "a") && cluster.members[1].gone == 1);
}

#[test]
fn a_connection_that_is_dead_on_one_side_heals() {
    let mut cluster = Cluster::new(1, 2, 8);
    subscribe(&mut cluster, 1, "a");
    cluster.run(SECOND);
    for round in 0..3 {
        cluster.members[1].cut[0] = true;
        cluster.run([2, 6, 100][round] * SECOND);
        let session = S + round as u64;
        publish(&mut cluster, 0, session, "a");
        cluster.run(SECOND);
        assert!(!cluster.members[1].has(session, "a"));
        cluster.members[1].cut[0] = false;
        let found = cluster.run_until(8 * SECOND, |cluster| cluster.members[1].has(session, "a"));
        assert!(found, "round {round}");
    }
    assert_eq!(cluster.daemons[0].as_ref().expect("up").clients(), 2);
}

#[test]
fn a_lost_session_is_found_again_if_it_is_still_told() {
    let mut cluster = Cluster::new(2, 2, 9);
    publish(&mut cluster, 0, S, "a");
    for member in [0, 1] {
        subscribe(&mut cluster, member, "a");
    }
    cluster.run(SECOND);
    for member in [0, 1, 0, 1] {
        let now = cluster.now;
        assert!(cluster.members[member].has(S, "a"));
        cluster.members[member].lose(now, S);
        cluster.run(SECOND / 2);
        assert!(!cluster.members[member].has(S, "a"));
        cluster.run(4 * SECOND);
        assert!(cluster.members[member].has(S, "a"), "member {member}");
    }
}

/// Publishers beyond the limit, subscribed to by their names or by a pattern, until those before
/// them leave.
fn room_is_made(by_pattern: bool, topics: usize, within: u64) {
    let mut cluster = Cluster::new(1, 2, 9);
    // A quarter of all for each address.
    cluster.topics_max = 8;
    cluster.join();
    for number in 0..topics {
        publish(&mut cluster, number % 2, S + number as u64, &format!("t.{number}"));
        if !by_pattern {
            subscribe(&mut cluster, 2, &format!("t.{number}"));
        }
    }
    if by_pattern {
        let pattern = TopicPattern::wildcard("t.*").expect("a pattern");
        let selection = TopicSelection::of_patterns(vec![pattern], 10_000);
        cluster.members[2].resolver.subscribe_pattern(1, &selection);
    }
    cluster.run(5 * SECOND);
    let known = |cluster: &Cluster| -> Vec<usize> {
        let found =
            |number: &usize| cluster.members[2].has(S + *number as u64, &format!("t.{number}"));
        (0..topics).filter(found).collect()
    };
    let first = known(&cluster);
    assert_eq!(first.len(), 2, "a quarter of the limit");
    let refused = cluster.members[2].resolver.counters().overflowed;
    assert_eq!(refused, topics as u64 - 2);
    let bytes = cluster.bytes;
    cluster.run(100 * SECOND);
    assert_eq!(cluster.members[2].resolver.counters().overflowed, refused, "no room, no question");
    assert!(cluster.bytes < bytes + 50_000, "keepalives: {}", cluster.bytes - bytes);
    for number in &first {
        cluster.members[number % 2].resolver.unpublish(S + *number as u64);
    }
    let is_new = |cluster: &Cluster| {
        let now = known(cluster);
        now.len() == 2 && now != first
    };
    assert!(cluster.run_until(within, is_new), "found anew");
    assert_eq!(cluster.members[2].gone, 2);
}

#[test]
fn publishers_that_found_no_room_are_found_when_others_leave() {
    for by_pattern in [false, true] {
        room_is_made(by_pattern, 5, 4 * SECOND);
    }
}

#[test]
fn of_very_many_publishers_without_room_some_are_found_when_others_leave() {
    for by_pattern in [false, true] {
        room_is_made(by_pattern, 2_000, 4 * SECOND);
    }
}
