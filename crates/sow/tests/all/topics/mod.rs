//! Two durable topics and random changes of them.
#![allow(dead_code, reason = "not all tests need all of it")]

use lanecast_filter::message_type::{Format, MessageType};
use lanecast_journal::{JournalConfig, Retention};
use lanecast_sim::rng::SimRng;
use lanecast_sow::durable::{SowStore, WriteError};
use lanecast_sow::{Publication, Topic, TopicDefinition};
use std::collections::BTreeMap;
use std::time::Duration;

/// Contents of a topic, by key.
pub(crate) type State = BTreeMap<u64, (Vec<u8>, u64, Option<u64>)>;

pub(crate) fn settings() -> JournalConfig {
    let retention = Retention { bytes: Some(1), age: None };
    JournalConfig { segment_bytes: 32 << 10, retention, ..JournalConfig::default() }
}

pub(crate) fn definitions() -> Vec<TopicDefinition> {
    let format = Format::new(MessageType::Fix).with_separators(b';', b'=').expect("separators");
    let orders = TopicDefinition::new("orders", format).key("/11").expect("a path");
    let orders = orders.index("/38").expect("a path");
    vec![orders, TopicDefinition::new("blobs", MessageType::Binary)]
}

pub(crate) fn state(topic: &Topic) -> State {
    let record = |record: &lanecast_sow::Record| {
        let bytes = [record.name().unwrap_or_default().as_bytes(), record.bytes()].concat();
        (record.key().0, (bytes, record.sequence(), record.expires_ns()))
    };
    topic.iter().map(record).collect()
}

pub(crate) fn world(topics: &[Topic]) -> (Vec<State>, Vec<u64>) {
    (topics.iter().map(state).collect(), topics.iter().map(Topic::sequence).collect())
}

/// Makes a random change; returns its journal sequence.
pub(crate) fn change<S: lanecast_journal::Storage + Clone>(
    archive: &mut SowStore<S>,
    topics: &mut [Topic],
    dice: &mut SimRng,
    now_ns: u64,
) -> Result<Option<u64>, WriteError> {
    let id = dice.within(0..=40);
    let lifetime = dice.percent(20).then(|| Duration::from_nanos(dice.within(1..=50)));
    let filling = "x".repeat(dice.spread(1..=300) as usize);
    let message = format!("11={id};38={};58={filling};", dice.within(0..=9));
    let client_sequence = dice.percent(30).then_some(("desk", now_ns + 1));
    let orders = Publication { lifetime, client_sequence, ..Publication::of(message.as_bytes()) };
    let name = format!("blob {id}");
    let blob = Publication { key: Some(&name), lifetime, ..Publication::of(message.as_bytes()) };
    let which = usize::from(dice.percent(40));
    let publication = if which == 0 { &orders } else { &blob };
    let topic = &mut topics[which];
    let logged = match dice.within(0..=9) {
        0..=6 => Some(archive.publish(topic, publication, now_ns)?),
        7 => archive.delete_as(topic, publication, now_ns)?,
        8 => {
            let key = topic.iter().next().map(|record| record.key());
            match key {
                Some(key) => archive.delete(topic, key, "", now_ns)?,
                None => None,
            }
        }
        _ => archive.expire(topic, now_ns)?,
    };
    Ok(logged.map(|logged| logged.journal_sequence))
}
