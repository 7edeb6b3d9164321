//! Subscriptions by pattern that match more topics than they may have.

use crate::transports::groups;
use lanecast_net::{NetSettings, NetTransport, Network, TransportKind};
use lanecast_transport::{Event, Subscribe, TopicPattern, TopicSelection, Transport};
use std::time::{Duration, Instant};

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// A topic without room is joined once the one that took the room is gone.
fn a_topic_that_found_no_room_is_joined_later(receive_threads: usize) {
    let (group, resolver_group) = groups();
    let resolver_group = Some(resolver_group);
    let settings = NetSettings { group, resolver_group, receive_threads, ..NetSettings::default() };
    let network = Network::open(settings).expect("a network");
    // Of one network: both are found in one step, before any is joined.
    let transport = NetTransport::new(network, TransportKind::Ru);
    let publish = |topic| (topic, transport.publisher(topic).expect("a publisher"));
    let mut publishers = ["a.1", "a.2"].map(publish).into_iter().collect::<Vec<_>>();
    let pattern = TopicPattern::wildcard("a.*").expect("a pattern");
    let selection = TopicSelection::of_patterns(vec![pattern], 1);
    let mut subscriber = transport.subscriber_of(&selection).expect("a subscriber");
    let (mut joined, mut left, start) = (Vec::new(), 0, Instant::now());
    let mut wait = |joined: &mut Vec<String>, left: &mut usize, count: usize| {
        while joined.len() < count || selection.refused() == 0 {
            subscriber.poll(16, |event| match event {
                Event::Joined(stream) => joined.push(stream.topic.clone()),
                Event::Left(..) => *left += 1,
                _ => {}
            });
            subscriber.wait_at_most(0, Duration::from_millis(10));
            assert!(start.elapsed() < PATIENCE, "{joined:?}, {} refused", selection.refused());
        }
    };
    wait(&mut joined, &mut left, 1);
    assert_eq!((joined.len(), left), (1, 0));
    publishers.retain(|(topic, _)| *topic != joined[0]);
    wait(&mut joined, &mut left, 2);
    assert_eq!((&*joined[1], left), (publishers[0].0, 1));
}

#[test]
fn a_topic_that_found_no_room_is_joined_when_there_is_some() {
    a_topic_that_found_no_room_is_joined_later(0);
    a_topic_that_found_no_room_is_joined_later(1);
}
