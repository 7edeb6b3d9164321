//! Publishing, deleting and expiry.

use lanecast_filter::message_type::{Format, MessageType};
use lanecast_sow::{Cause, Publication, Topic, TopicDefinition, TopicError};
use std::time::Duration;

fn fix() -> Format {
    Format::new(MessageType::Fix).with_separators(b';', b'=').expect("separators")
}

fn orders() -> Topic {
    let definition = TopicDefinition::new("orders", fix()).key("/11").expect("a path");
    Topic::new(definition).expect("a topic")
}

fn of(bytes: &str) -> Publication<'_> {
    Publication::of(bytes.as_bytes())
}

#[test]
fn deltas_make_no_record_longer_than_allowed() {
    let definition = TopicDefinition::new("orders", fix()).key("/11").expect("a path");
    let mut topic = Topic::new(definition.merged_bytes_max(20)).expect("a topic");
    topic.publish_delta(&of("11=a;38=1;"), 0).expect("taken");
    topic.publish_delta(&of("11=a;55=IBMIBM;"), 0).expect("20 bytes");
    for (delta, bytes) in [("11=a;44=1;", 25), ("11=a;38=1234567;", 26)] {
        let refused = topic.publish_delta(&of(delta), 0).map(drop);
        assert_eq!(refused, Err(TopicError::MergedTooLong { bytes, max: 20 }));
    }
    assert_eq!(topic.sequence(), 2, "a refused delta changes nothing");
    let change = topic.publish_delta(&of("11=a;38=12;55=IBM;"), 0).expect("shorter again");
    let after = change.after.expect("a record");
    assert_eq!(after.record().bytes(), b"11=a;38=12;55=IBM;");
}

#[test]
fn the_last_message_of_a_key_is_its_record() {
    let mut topic = orders();
    let change = topic.publish(&of("11=a;38=1;"), 5).expect("taken");
    let key = change.key;
    assert!(change.before.is_none());
    assert_eq!((change.sequence, change.cause), (1, Cause::Published));
    assert_eq!(change.environment.topic, "orders");
    let change = topic.publish(&of("11=a;38=2;"), 6).expect("taken");
    assert_eq!(change.key, key);
    let bytes = |version: Option<lanecast_sow::Version<'_>>| {
        version.map(|version| String::from_utf8_lossy(version.record().bytes()).into_owned())
    };
    assert_eq!(bytes(change.before).as_deref(), Some("11=a;38=1;"));
    assert_eq!(bytes(change.after).as_deref(), Some("11=a;38=2;"));
    topic.publish(&of("11=b;38=3;"), 7).expect("taken");
    assert_eq!((topic.len(), topic.sequence()), (2, 3));
    assert_eq!(topic.get(key).map(|record| record.sequence()), Some(2));
}

#[test]
fn both_versions_can_be_read_for_wanted_fields() {
    let mut topic = orders();
    let path = "/38".parse().expect("a path");
    let slot = topic.with_fields(|fields| fields.slot(&path)).expect("room");
    topic.publish(&of("11=a;38=1;"), 5).expect("taken");
    for quantity in 2..5_u8 {
        let message = format!("11=a;38={quantity};");
        let change = topic.publish(&of(&message), 6).expect("taken");
        let text = |version: Option<lanecast_sow::Version<'_>>| {
            let message = version.expect("there").message(&change.environment);
            message.row.text(slot, message.bytes).map(<[u8]>::to_vec)
        };
        assert_eq!(text(change.before), Some(vec![b'0' + quantity - 1]));
        assert_eq!(text(change.after), Some(vec![b'0' + quantity]));
    }
}

#[test]
fn deleted_records_are_gone_and_said_to_be() {
    let mut topic = orders();
    let key = topic.publish(&of("11=a;38=1;"), 5).expect("taken").key;
    topic.publish(&of("11=b;38=1;"), 5).expect("taken");
    let change = topic.delete(key, "me", 6).expect("there");
    assert_eq!(
        (change.cause, change.sequence, change.environment.client),
        (Cause::Deleted, 3, "me")
    );
    assert!(change.after.is_none() && change.before.is_some());
    assert!(topic.delete(key, "me", 6).is_none());
    let change = topic.delete_as(&of("11=b;"), 6).expect("a key");
    assert!(change.is_some());
    assert!(topic.is_empty());
    assert!(topic.delete_as(&of("11=b;"), 6).expect("a key").is_none());
    assert_eq!(topic.sequence(), 4);
}

#[test]
fn records_expire_unless_they_are_renewed() {
    let definition = TopicDefinition::new("quotes", fix()).key("/55").expect("a path");
    let definition = definition.lifetime(Duration::from_nanos(10));
    let mut topic = Topic::new(definition).expect("a topic");
    topic.publish(&of("55=a;"), 0).expect("taken");
    topic.publish(&of("55=b;"), 1).expect("taken");
    let short = Publication { lifetime: Some(Duration::from_nanos(3)), ..of("55=c;") };
    topic.publish(&short, 2).expect("taken");
    topic.publish(&of("55=a;"), 4).expect("taken");
    assert_eq!(topic.next_expiry_ns(), Some(5));
    assert!(topic.expire(4).is_none());
    let expired = |topic: &mut Topic, now_ns| {
        topic.expire(now_ns).map(|change| {
            assert_eq!(change.cause, Cause::Expired);
            change.before.expect("a record").record().bytes().to_vec()
        })
    };
    assert_eq!(expired(&mut topic, 100), Some(b"55=c;".to_vec()));
    assert_eq!(expired(&mut topic, 100), Some(b"55=b;".to_vec()));
    assert_eq!(expired(&mut topic, 13), None);
    assert_eq!(expired(&mut topic, 14), Some(b"55=a;".to_vec()));
    assert_eq!((topic.len(), topic.next_expiry_ns()), (0, None));
}

#[test]
fn a_message_without_key_is_refused_and_changes_nothing() {
    let mut topic = orders();
    let refusal = topic.publish(&of("38=1;"), 0).expect_err("no key");
    assert_eq!(refusal.to_string(), "the key field /11 is missing or empty: give it a value");
    assert!(matches!(topic.publish(&of("11=;"), 0), Err(TopicError::MissingKeyField(_))));
    assert!(matches!(topic.publish(&of("x"), 0), Err(TopicError::Malformed(_))));
    let named = Publication { key: Some("a"), ..of("11=1;") };
    assert_eq!(topic.publish(&named, 0).err(), Some(TopicError::UnexpectedKey));
    assert_eq!((topic.len(), topic.sequence()), (0, 0));
}

#[test]
fn publishers_supply_keys_where_there_are_no_key_fields() {
    let mut topic =
        Topic::new(TopicDefinition::new("blobs", MessageType::Binary)).expect("a topic");
    assert_eq!(topic.publish(&of("x"), 0).err(), Some(TopicError::MissingKey));
    for (name, bytes) in [("one", "x"), ("two", "y"), ("one", "z")] {
        let named = Publication { key: Some(name), ..of(bytes) };
        topic.publish(&named, 0).expect("taken");
    }
    let mut records: Vec<_> = topic.iter().map(|record| (record.name(), record.bytes())).collect();
    records.sort();
    assert_eq!(records, [(Some("one"), &b"z"[..]), (Some("two"), &b"y"[..])]);
}

#[test]
fn a_delta_changes_its_fields_and_is_delivered_as_the_whole_record() {
    let mut topic = orders();
    let change = topic.publish_delta(&of("11=a;38=1;55=IBM;"), 0).expect("taken");
    assert_eq!((change.cause, change.before.is_none()), (Cause::Published, true));
    let change = topic.publish_delta(&of("11=a;38=2;44=1.5;"), 1).expect("taken");
    let text = |version: Option<lanecast_sow::Version<'_>>| {
        version.map(|version| String::from_utf8_lossy(version.record().bytes()).into_owned())
    };
    assert_eq!(text(change.before).as_deref(), Some("11=a;38=1;55=IBM;"));
    assert_eq!(text(change.after).as_deref(), Some("11=a;38=2;55=IBM;44=1.5;"));
    assert_eq!((change.cause, change.sequence), (Cause::Merged, 2));
    let mut blobs =
        Topic::new(TopicDefinition::new("blobs", MessageType::Binary)).expect("a topic");
    let named = Publication { key: Some("one"), ..of("x") };
    blobs.publish(&named, 0).expect("taken");
    assert!(matches!(blobs.publish_delta(&named, 0), Err(TopicError::Delta(_))));
    assert_eq!(blobs.sequence(), 1);
}
