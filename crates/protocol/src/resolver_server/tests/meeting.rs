//! Who meets at daemons, and what becomes of it when one of them goes.

use super::hall::Hall;
use super::*;

const S: u64 = 0x5e55;

fn publish(hall: &mut Hall, member: usize, session: u64, topic: &str) {
    hall.members[member].resolver.publish(announcement(session), topic).expect("a name");
}

fn subscribe(hall: &mut Hall, member: usize, topic: &str) {
    hall.members[member].resolver.subscribe(topic).expect("a name");
}

#[test]
fn a_topic_is_found_whoever_comes_first() {
    let mut hall = Hall::new(1, 3, 1);
    publish(&mut hall, 0, S, "early");
    subscribe(&mut hall, 1, "early");
    subscribe(&mut hall, 1, "late");
    hall.run(SECOND);
    assert!(hall.members[1].has(S, "early"));
    publish(&mut hall, 2, S + 1, "late");
    subscribe(&mut hall, 0, "late");
    subscribe(&mut hall, 0, "early");
    hall.run(10 * crate::MILLISECOND);
    assert!(hall.members[1].has(S + 1, "late") && hall.members[0].has(S + 1, "late"));
    assert!(hall.members[0].has(S, "early"), "its own");
    assert!(hall.members[2].found.is_empty());
}

#[test]
fn clients_are_told_what_they_want_and_nothing_else() {
    let mut hall = Hall::new(1, 2, 2);
    for number in 0..1_000 {
        publish(&mut hall, 0, S, &format!("topic {number}"));
    }
    subscribe(&mut hall, 1, "topic 7");
    hall.run(10 * SECOND);
    let resolver_server = hall.daemons[0].as_ref().expect("up");
    assert_eq!(resolver_server.counters().told, 1);
    assert_eq!(
        (resolver_server.topics(), resolver_server.sessions(), resolver_server.clients()),
        (1_001, 1, 2)
    );
    hall.members[1].resolver.unsubscribe("topic 7");
    hall.run(SECOND);
    assert_eq!(hall.daemons[0].as_ref().expect("up").topics(), 1_000);
    hall.members[0].resolver.unpublish(S);
    hall.run(SECOND);
    let resolver_server = hall.daemons[0].as_ref().expect("up");
    assert_eq!(
        (resolver_server.topics(), resolver_server.sessions(), resolver_server.counters().told),
        (0, 0, 1)
    );
}

#[test]
fn an_unspecified_address_is_where_the_connection_comes_from() {
    let mut resolver_server = ResolverServer::new(ResolverServerSettings::default(), 0);
    let publisher = resolver_server.connect(0, "10.0.0.7:99".parse().unwrap()).expect("room");
    let asker = resolver_server.connect(0, "10.0.0.8:99".parse().unwrap()).expect("room");
    let mut buffer = [0; 512];
    let mut writer = FrameWriter::new(&mut buffer, Kind::Advert, 0, 5, 0);
    let mut entry = writer.add_entry(announcement(S).entry(0), 1).expect("room");
    assert!(writer.add_entry_name(&mut entry, "a"));
    let length = writer.finish();
    resolver_server.on_frame(0, publisher, &hall::split(&buffer[..length]));
    let mut writer = FrameWriter::new(&mut buffer, Kind::Query, query_flag::ALL, 6, 0);
    assert!(writer.add_name("b"));
    let length = writer.finish();
    resolver_server.on_frame(0, asker, &hall::split(&buffer[..length]));
    let length =
        resolver_server.next_frame(0, asker, &mut buffer).expect("all, though it is not wanted");
    let (told, topics) = adverts(hall::split(&buffer[..length]).body).next().expect("an entry");
    assert_eq!(told.control(), "10.0.0.7:4000".parse().unwrap());
    assert_eq!(topics.collect::<Vec<_>>(), ["a"]);
    assert_eq!(resolver_server.next_frame(0, asker, &mut buffer), None, "once");
}

#[test]
fn ten_thousand_topics_are_found_at_once() {
    let mut hall = Hall::new(2, 2, 3);
    for number in 0..10_000 {
        publish(&mut hall, 0, S + number % 4, &format!("prices.of.thing.{number}"));
        subscribe(&mut hall, 1, &format!("prices.of.thing.{number}"));
    }
    let all = |hall: &Hall| hall.members[1].found.values().map(BTreeSet::len).sum::<usize>();
    assert!(hall.run_until(crate::MILLISECOND, |hall| all(hall) == 10_000), "{}", all(&hall));
    assert!(hall.bytes < 2_500_000, "{}", hall.bytes);
    hall.bytes = 0;
    hall.run(100 * SECOND);
    assert!(hall.bytes < 25_000, "then silence, but for signs of life: {}", hall.bytes);
}

#[test]
fn a_daemon_that_starts_anew_takes_nothing_away() {
    let mut hall = Hall::new(1, 3, 4);
    publish(&mut hall, 0, S, "a");
    subscribe(&mut hall, 1, "a");
    hall.run(20 * SECOND);
    for pause in [0, 1, 20, 400] {
        hall.kill(0);
        hall.run(pause * SECOND);
        hall.start(0);
        // Somebody who did not know it before finds it as soon as its publisher is back.
        subscribe(&mut hall, 2, "a");
        let back = hall.run_until(3 * SECOND, |hall| hall.members[2].has(S, "a"));
        assert!(back, "after {pause} s");
        hall.run(10 * SECOND);
        hall.members[2].resolver.unsubscribe("a");
        hall.members[2].found.clear();
        assert!(hall.members[1].has(S, "a") && hall.members[1].gone == 0);
    }
}

#[test]
fn what_ended_while_the_daemon_was_away_is_gone_when_it_is_back() {
    let mut hall = Hall::new(1, 2, 5);
    publish(&mut hall, 0, S, "a");
    publish(&mut hall, 0, S + 1, "a");
    subscribe(&mut hall, 1, "a");
    hall.run(20 * SECOND);
    hall.kill(0);
    hall.members[0].resolver.unpublish(S);
    hall.run(SECOND);
    hall.start(0);
    hall.run(4 * SECOND);
    assert!(hall.members[1].has(S, "a"), "its publisher may not be back yet");
    hall.run(6 * SECOND);
    assert!(!hall.members[1].has(S, "a") && hall.members[1].has(S + 1, "a"));
    // The same while only the client was away.
    hall.members[0].cut[0] = true;
    hall.members[0].resolver.unpublish(S + 1);
    hall.run(20 * SECOND);
    assert!(hall.members[1].has(S + 1, "a"), "perhaps it lives");
    hall.members[0].cut[0] = false;
    hall.run(8 * SECOND);
    assert!(!hall.members[1].has(S + 1, "a"));
}

#[test]
fn a_killed_publisher_is_kept_for_a_minute() {
    let mut hall = Hall::new(1, 2, 6);
    publish(&mut hall, 0, S, "a");
    subscribe(&mut hall, 1, "a");
    hall.run(SECOND);
    hall.replace(0);
    hall.run(50 * SECOND);
    let watcher = |hall: &Hall| hall.members.iter().filter(|it| it.has(S, "a")).count();
    assert_eq!(watcher(&hall), 1, "perhaps it lives");
    hall.run(15 * SECOND);
    assert_eq!(watcher(&hall), 0);
    let resolver_server = hall.daemons[0].as_ref().expect("up");
    assert_eq!((resolver_server.sessions(), resolver_server.counters().expired), (0, 1));
}

#[test]
fn of_two_daemons_one_is_enough() {
    let mut hall = Hall::new(2, 2, 7);
    publish(&mut hall, 0, S, "a");
    subscribe(&mut hall, 1, "a");
    hall.run(SECOND);
    for (round, dead) in [0, 1, 0, 1].into_iter().enumerate() {
        hall.kill(dead);
        let (session, topic) = (S + 1 + round as u64, format!("topic {round}"));
        publish(&mut hall, 0, session, &topic);
        subscribe(&mut hall, 1, &topic);
        let found = hall.run_until(SECOND, |hall| hall.members[1].has(session, &topic));
        assert!(found, "round {round}");
        hall.run(120 * SECOND);
        hall.start(dead);
        hall.run(10 * SECOND);
        assert!(hall.members[1].has(S, "a") && hall.members[1].gone == 0);
    }
    hall.members[0].resolver.unpublish(S);
    hall.run(SECOND);
    assert!(!hall.members[1].has(S, "a") && hall.members[1].gone == 1);
}

#[test]
fn a_connection_that_is_dead_on_one_side_heals() {
    let mut hall = Hall::new(1, 2, 8);
    subscribe(&mut hall, 1, "a");
    hall.run(SECOND);
    for round in 0..3 {
        hall.members[1].cut[0] = true;
        hall.run([2, 6, 100][round] * SECOND);
        let session = S + round as u64;
        publish(&mut hall, 0, session, "a");
        hall.run(SECOND);
        assert!(!hall.members[1].has(session, "a"));
        hall.members[1].cut[0] = false;
        let found = hall.run_until(8 * SECOND, |hall| hall.members[1].has(session, "a"));
        assert!(found, "round {round}");
    }
    assert_eq!(hall.daemons[0].as_ref().expect("up").clients(), 2);
}

#[test]
fn a_lost_session_is_found_again_if_it_is_still_told() {
    let mut hall = Hall::new(2, 2, 9);
    publish(&mut hall, 0, S, "a");
    for member in [0, 1] {
        subscribe(&mut hall, member, "a");
    }
    hall.run(SECOND);
    for member in [0, 1, 0, 1] {
        let now = hall.now;
        assert!(hall.members[member].has(S, "a"));
        hall.members[member].lose(now, S);
        hall.run(SECOND / 2);
        assert!(!hall.members[member].has(S, "a"));
        hall.run(4 * SECOND);
        assert!(hall.members[member].has(S, "a"), "member {member}");
    }
}
