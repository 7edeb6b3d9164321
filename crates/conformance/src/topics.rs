//! Topics of a session: subscribers receive theirs and no others.

use crate::record::gather;
use crate::{Body, Entry, Record};
use lanecast_transport::{Publish, TopicId, Transport};

/// A topic added to a running session is joined, then received, by old and new subscribers.
pub fn a_topic_added_later_is_joined<C: Transport>(transport: &C) {
    let mut both = transport.subscriber(&["first", "second"]).expect("a subscriber");
    let mut only = transport.subscriber(&["second"]).expect("a subscriber");
    let mut publisher = transport.publisher("first").expect("a publisher");
    gather(&mut publisher, 1);
    publisher.send(b"1").expect("room");
    let mut record = Record::new();
    record.listen(&mut both, |record| record.message_count() == 1);
    assert_eq!(record.joined().len(), 1, "the second is not there yet");
    let second = publisher.add_topic("second").expect("a topic");
    gather(&mut publisher, 2);
    publisher.send_on(second, b"2").expect("room");
    record.listen(&mut both, |record| record.message_count() == 2);
    record.check_lives();
    let streams = record.joined();
    assert_eq!((streams[1].topic.as_str(), streams[1].topic_id), ("second", second));
    assert_eq!(streams[0].session, streams[1].session);
    let mut record = Record::new();
    record.listen(&mut only, |record| record.message_count() > 0);
    record.check_lives();
    assert_eq!(record.messages(), [b"2"]);
    assert_eq!(record.joined().len(), 1);
}

/// A subscriber to other topics never blocks a publisher, polling or not.
pub fn strangers_to_a_topic_hold_nobody_up<C: Transport>(transport: &C) {
    let _stranger = transport.subscriber(&["other"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    let mut friend = transport.subscriber(&["a"]).expect("a subscriber");
    gather(&mut publisher, 1);
    let longest = publisher.longest_message();
    let mut record = Record::new();
    for number in 0..50u64 {
        publisher.try_send(&Body::of_length(number, longest).bytes()).expect("room");
        record.listen(&mut friend, |record| record.message_count() as u64 > number);
        record.exhaust(&mut friend);
    }
    assert_eq!(publisher.subscribers(), 1);
}

/// A subscriber leaves out the session that it names, polling or not, and receives all others.
pub fn a_session_can_be_left_out<C: Transport>(transport: &C) {
    let mut own = transport.publisher("a").expect("a publisher");
    let mut subscriber = transport.subscriber_except(&["a"], own.session()).expect("a subscriber");
    let mut other = transport.publisher("a").expect("a publisher");
    gather(&mut other, 1);
    let longest = own.longest_message();
    for number in 0..50u64 {
        own.try_send(&Body::of_length(number, longest).bytes()).expect("room");
    }
    other.send(b"from the other").expect("room");
    let mut record = Record::new();
    record.listen(&mut subscriber, |record| record.message_count() > 0);
    record.exhaust(&mut subscriber);
    assert_eq!(record.messages(), [b"from the other"]);
    assert_eq!((own.subscribers(), other.subscribers()), (0, 1));
}

/// Adding a topic again gives the same number; an impossible name is refused.
pub fn the_same_topic_is_one_number<C: Transport>(transport: &C) {
    let mut publisher = transport.publisher("a").expect("a publisher");
    assert_eq!(publisher.add_topic("a").expect("known"), TopicId::FIRST);
    let second = publisher.add_topic("b").expect("a topic");
    assert_ne!(second, TopicId::FIRST);
    assert_eq!(publisher.add_topic("b").expect("known"), second);
    assert!(publisher.add_topic("").is_err(), "no name");
    assert!(publisher.add_topic(&"x".repeat(5_000)).is_err(), "too long a name");
    assert!(transport.publisher("").is_err(), "no name");
    assert!(transport.subscriber(&[]).is_err(), "a subscriber to nothing");
    assert!(transport.subscriber(&["a", ""]).is_err(), "no name");
    publisher.send_on(second, b"still fine").expect("room");
}

/// Messages of other topics of the same session do not arrive.
pub fn unwanted_topics_do_not_arrive<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["wanted"]).expect("a subscriber");
    let mut publisher = transport.publisher("unwanted").expect("a publisher");
    let wanted = publisher.add_topic("wanted").expect("a topic");
    let unwanted = publisher.add_topic("also unwanted").expect("a topic");
    gather(&mut publisher, 1);
    let longest = publisher.longest_message();
    let mut record = Record::new();
    for number in 0..100u64 {
        publisher.send(&Body::new(number, longest).bytes()).expect("room");
        publisher.send_on(wanted, &number.to_le_bytes()).expect("room");
        publisher.send_on(unwanted, &Body::new(number, 300).bytes()).expect("room");
        record.listen(&mut subscriber, |record| record.message_count() as u64 > number);
    }
    drop(publisher);
    record.listen(&mut subscriber, |record| !record.left().is_empty());
    record.check_lives();
    let expected: Vec<[u8; 8]> = (0..100u64).map(u64::to_le_bytes).collect();
    assert_eq!(record.messages(), expected);
    let streams = record.entries().iter().filter(|entry| !matches!(entry, Entry::Message { .. }));
    assert_eq!(streams.count(), 2, "one Joined, one Left");
}
