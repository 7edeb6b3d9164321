//! One resolver, step by step.

use super::network::{Network, address};
use super::*;
use crate::{announcement, entry};
use lanecast_protocol::resolution::{Announcement, InvalidTopicName, ResolverCounters};
use lanecast_protocol::{MILLISECOND, SECOND};
use lanecast_wire::net::{
    AdvertEntry, DATAGRAM_MIN, Frame, FrameWriter, Kind, NAME_MAX, address_bytes, adverts, names,
};
use std::collections::BTreeSet;
use std::net::SocketAddr;

const START: Nanos = 7 * SECOND;

/// Kinds and names of the frames that a resolver sends now.
fn frames(resolver: &mut Resolver, now: Nanos) -> Vec<(Kind, Vec<String>)> {
    let mut buffer = [0; 1_472];
    let mut frames = Vec::new();
    while let Some(length) = resolver.next_transmit(now, &mut buffer) {
        let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
        let topics: Vec<_> = match frame.kind {
            Kind::Advert => adverts(frame.body).flat_map(|(_, topics)| topics).collect(),
            _ => names(frame.body).collect(),
        };
        frames.push((frame.kind, topics.into_iter().map(String::from).collect()));
    }
    frames
}

fn query(resolver: &mut Resolver, now: Nanos, from: u64, topic: &str) {
    let mut buffer = [0; 512];
    let mut writer = FrameWriter::new(&mut buffer, Kind::Query, 0, from, 0);
    assert!(writer.add_name(topic));
    let length = writer.finish();
    let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
    resolver.on_frame(now, address(9), &frame);
}

fn advert(resolver: &mut Resolver, now: Nanos, from: u64, entry: AdvertEntry, topic: &str) {
    let mut buffer = [0; 512];
    let mut writer = FrameWriter::new(&mut buffer, Kind::Advert, 0, from, 0);
    let mut open = writer.add_entry(entry, topic.len()).expect("room");
    assert!(topic.is_empty() || writer.add_entry_name(&mut open, topic));
    let length = writer.finish();
    let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
    resolver.on_frame(now, address(9), &frame);
}

#[test]
fn a_process_finds_its_own_publishers_at_once() {
    let mut it = resolver(1, START);
    it.subscribe("a").expect("a name");
    it.publish(announcement(SESSION), "a").expect("a name");
    let found = ResolverEvent::Found { announcement: announcement(SESSION), topic: "a".into() };
    assert_eq!(events(&mut it), std::slice::from_ref(&found));
    it.publish(announcement(SESSION), "b").expect("a name");
    assert!(events(&mut it).is_empty());
    it.subscribe("b").expect("a name");
    it.subscribe("a").expect("a name");
    let events_now = events(&mut it);
    assert!(events_now.len() == 2 && events_now[1] == found, "{events_now:?}");
    it.unpublish(SESSION);
    assert_eq!(events(&mut it), [ResolverEvent::Gone { session: SESSION }]);
}

#[test]
fn an_own_session_that_is_lost_is_found_by_the_next_advert() {
    let mut it = resolver(1, START);
    it.subscribe("a").expect("a name");
    it.publish(announcement(SESSION), "a").expect("a name");
    events(&mut it);
    frames(&mut it, START);
    it.session_lost(START, SESSION);
    assert!(events(&mut it).is_empty());
    frames(&mut it, START + 10 * MILLISECOND);
    let found = ResolverEvent::Found { announcement: announcement(SESSION), topic: "a".into() };
    assert_eq!(events(&mut it), [found]);
}

#[test]
fn topics_of_a_session_are_told_together_and_repeated() {
    let mut it = resolver(1, START);
    for topic in ["a", "b", "c"] {
        it.publish(announcement(SESSION), topic).expect("a name");
    }
    let together = (Kind::Advert, ["a", "b", "c"].map(String::from).to_vec());
    assert_eq!(frames(&mut it, START), std::slice::from_ref(&together));
    assert!(frames(&mut it, START + 9 * MILLISECOND).is_empty());
    assert_eq!(it.next_deadline(), Some(START + 10 * MILLISECOND));
    assert_eq!(frames(&mut it, START + 10 * MILLISECOND), [together]);
}

#[test]
fn a_query_is_answered_but_not_behind_an_advert() {
    let mut it = resolver(1, START);
    it.publish(announcement(SESSION), "a").expect("a name");
    frames(&mut it, START);
    query(&mut it, START + 4 * MILLISECOND, 2, "a");
    assert!(frames(&mut it, START + 4 * MILLISECOND).is_empty());
    query(&mut it, START + 6 * MILLISECOND, 2, "other");
    assert!(frames(&mut it, START + 6 * MILLISECOND).is_empty());
    query(&mut it, START + 6 * MILLISECOND, 2, "a");
    assert_eq!(frames(&mut it, START + 6 * MILLISECOND).len(), 1);
}

#[test]
fn among_many_answers_wait_for_a_random_time() {
    let mut waits = BTreeSet::new();
    for id in 100..120 {
        let mut it = resolver(id, START);
        it.publish(announcement(SESSION), "a").expect("a name");
        let mut now = START;
        while now < START + 70 * SECOND {
            frames(&mut it, now);
            now = it.next_deadline().expect("it never falls silent");
        }
        // At once after an Advert, the next is at least 5 s away.
        frames(&mut it, now);
        now += 10 * MILLISECOND;
        (0..6).for_each(|other| query(&mut it, now, other, "unknown"));
        query(&mut it, now, 7, "a");
        waits.insert(it.next_deadline().expect("an answer") - now);
    }
    assert!(waits.iter().all(|wait| *wait <= 21 * MILLISECOND), "{waits:?}");
    assert!(waits.len() > 5, "{waits:?}");
}

#[test]
fn a_wanted_topic_is_asked_for_until_a_publisher_is_known() {
    let mut it = resolver(1, START);
    it.subscribe("a").expect("a name");
    let mut now = START;
    let mut asked = 0;
    while now < START + 3 * SECOND {
        asked += frames(&mut it, now).len();
        now = it.next_deadline().expect("it asks on");
    }
    assert!((9..=12).contains(&asked), "{asked}");
    advert(&mut it, now, 2, entry(SESSION, 0), "a");
    assert!(frames(&mut it, now + SECOND).is_empty());
    it.session_lost(now, SESSION);
    assert_eq!(frames(&mut it, now).len(), 1, "asked again at once");
}

#[test]
fn a_topic_is_asked_for_twice_even_if_a_publisher_is_known() {
    let mut it = resolver(1, START);
    it.publish(announcement(SESSION), "a").expect("a name");
    it.subscribe("a").expect("a name");
    let mut asked = Vec::new();
    for time in (0..SECOND).step_by(MILLISECOND as usize) {
        let sent = frames(&mut it, START + time);
        asked.extend(sent.iter().filter(|(kind, _)| *kind == Kind::Query).map(|_| time));
    }
    assert_eq!(asked, [0, 10 * MILLISECOND]);
}

#[test]
fn own_frames_that_come_back_are_ignored() {
    let mut network = Network::new(1, 5);
    network.resolvers[0].publish(announcement(SESSION), "a").expect("a name");
    network.resolvers[0].subscribe("b").expect("a name");
    network.run(SECOND);
    let ResolverCounters { frames: heard, adverts, queries, .. } = *network.resolvers[0].counters();
    assert!(heard == 0 && adverts > 0 && queries > 0);
}

#[test]
fn asking_rests_while_one_of_two_publishers_is_left() {
    let mut it = resolver(1, START);
    it.subscribe("a").expect("a name");
    advert(&mut it, START, 2, entry(SESSION, 0), "a");
    advert(&mut it, START, 2, entry(SESSION + 1, 0), "a");
    frames(&mut it, START);
    frames(&mut it, START + 10 * MILLISECOND);
    it.session_lost(START + SECOND, SESSION);
    assert!(frames(&mut it, START + SECOND).is_empty());
    it.session_lost(START + SECOND, SESSION + 1);
    assert_eq!(frames(&mut it, START + SECOND).len(), 1);
}

#[test]
fn a_foreign_advert_of_an_own_session_is_ignored() {
    let mut it = resolver(1, START);
    it.publish(announcement(SESSION), "a").expect("a name");
    it.subscribe("a").expect("a name");
    it.subscribe("b").expect("a name");
    events(&mut it);
    it.session_lost(START, SESSION);
    let entry = entry(SESSION, 0);
    advert(&mut it, START, 2, entry, "a");
    advert(&mut it, START, 2, entry, "b");
    it.unpublish(SESSION);
    advert(&mut it, START, 2, entry, "a");
    assert!(events(&mut it).is_empty());
}

#[test]
fn a_session_that_is_heard_is_found_once() {
    let mut network = Network::new(2, 5);
    network.resolvers[0].publish(announcement(SESSION), "a").expect("a name");
    network.resolvers[1].subscribe("a").expect("a name");
    network.run(SECOND);
    network.found[1].clear();
    network.run(200 * SECOND);
    assert!(network.found[1].is_empty(), "found again, though it was not forgotten");
}

#[test]
fn an_unwanted_topic_is_not_asked_for_and_found_anew_later() {
    let mut it = resolver(1, START);
    it.subscribe("a").expect("a name");
    it.subscribe("a").expect("a name");
    advert(&mut it, START, 2, entry(SESSION, 0), "a");
    assert_eq!(events(&mut it).len(), 1);
    it.unsubscribe("a");
    assert!(!frames(&mut it, START).is_empty(), "one still wants it");
    it.unsubscribe("a");
    it.unsubscribe("a");
    assert!(frames(&mut it, START + SECOND).is_empty());
    assert_eq!(it.next_deadline(), None, "nothing is kept");
    advert(&mut it, START, 2, entry(SESSION, 0), "a");
    assert!(events(&mut it).is_empty());
    it.subscribe("a").expect("a name");
    advert(&mut it, START, 2, entry(SESSION, 0), "a");
    assert_eq!(events(&mut it).len(), 1);
}

#[test]
fn a_query_of_another_stands_for_one_but_not_for_two() {
    let mut it = resolver(1, START);
    it.subscribe("a").expect("a name");
    query(&mut it, START, 2, "a");
    assert!(frames(&mut it, START).is_empty());
    for time in 1..=9 {
        query(&mut it, START + time * MILLISECOND, 2, "a");
    }
    assert_eq!(frames(&mut it, START + 10 * MILLISECOND).len(), 1);
}

#[test]
fn an_end_is_told_three_times_and_leaves_a_tombstone() {
    let mut it = resolver(1, START);
    it.publish(announcement(SESSION), "a").expect("a name");
    frames(&mut it, START);
    it.unpublish(SESSION);
    it.unpublish(SESSION);
    let mut times = Vec::new();
    let mut now = START;
    while let Some(deadline) = it.next_deadline() {
        now = now.max(deadline);
        times.extend(frames(&mut it, now).iter().map(|_| now - START));
    }
    assert_eq!(times, [0, 10 * MILLISECOND, 30 * MILLISECOND]);

    let (entry, gone) = (entry(SESSION, 0), entry(SESSION, 1));
    let mut other = resolver(2, START);
    other.subscribe("a").expect("a name");
    advert(&mut other, START, 1, entry, "a");
    advert(&mut other, START, 3, gone, "");
    assert_eq!(events(&mut other).len(), 1, "only its announcer can end it");
    advert(&mut other, START, 1, gone, "");
    assert_eq!(events(&mut other), [ResolverEvent::Gone { session: SESSION }]);
    advert(&mut other, START + 9 * SECOND, 1, entry, "a");
    assert!(events(&mut other).is_empty());
    advert(&mut other, START + 10 * SECOND, 1, entry, "a");
    assert_eq!(events(&mut other).len(), 1);
}

#[test]
fn a_forged_end_does_not_hide_the_session() {
    let (entry, gone) = (entry(SESSION, 0), entry(SESSION, 1));
    let mut it = resolver(1, START);
    it.subscribe("a").expect("a name");
    advert(&mut it, START, 66, entry, "a");
    advert(&mut it, START, 66, gone, "");
    assert_eq!(events(&mut it).len(), 2);
    advert(&mut it, START + SECOND, 2, entry, "a");
    assert_eq!(events(&mut it).len(), 1);
}

#[test]
fn an_unspecified_address_is_where_the_advert_comes_from() {
    let mut it = resolver(1, START);
    it.subscribe("a").expect("a name");
    advert(&mut it, START, 2, entry(SESSION, 0), "a");
    let control = SocketAddr::new(address(9).ip(), 4_000);
    let announcement = Announcement { control, ..announcement(SESSION) };
    assert_eq!(events(&mut it), [ResolverEvent::Found { announcement, topic: "a".into() }]);
}

#[test]
fn addresses_of_others_are_believed_only_if_that_is_allowed() {
    let control = SocketAddr::from(([10, 0, 0, 77], 4_000));
    let mut foreign = entry(SESSION, 0);
    (foreign.control, foreign.control_port) = address_bytes(control);
    for allowed in [false, true] {
        let settings =
            ResolverSettings { resolver: 1, allow_foreign: allowed, ..ResolverSettings::default() };
        let mut it = Resolver::new(settings, START);
        it.subscribe("a").expect("a name");
        advert(&mut it, START, 2, foreign, "a");
        assert_eq!(events(&mut it).len(), usize::from(allowed));
        assert_eq!(it.counters().foreign, u64::from(!allowed));
    }
}

#[test]
fn a_silent_session_expires_and_is_found_again() {
    let mut network = Network::new(2, 5);
    network.resolvers[0].publish(announcement(SESSION), "a").expect("a name");
    network.resolvers[1].subscribe("a").expect("a name");
    network.run(SECOND);
    assert!(network.found[1].contains_key(&SESSION));
    network.parts = vec![0, 1];
    network.run(40 * SECOND);
    network.found[1].clear();
    network.parts = vec![0, 0];
    assert!(network.run_until(10 * SECOND, |it| it.found[1].contains_key(&SESSION)));
}

#[test]
fn empty_and_long_names_are_rejected() {
    let mut it = resolver(1, START);
    let long = "x".repeat(NAME_MAX + 1);
    for name in ["", &long] {
        assert_eq!(it.subscribe(name), Err(InvalidTopicName));
        assert_eq!(it.publish(announcement(SESSION), name), Err(InvalidTopicName));
    }
    let longest = "x".repeat(NAME_MAX);
    it.publish(announcement(SESSION), &longest).expect("a name");
    let mut buffer = [0; DATAGRAM_MIN];
    assert!(it.next_transmit(START, &mut buffer).is_some());
}
