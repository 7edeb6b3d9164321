//! Encoding of journal and checkpoint entries.

use super::definition_text::text_of_topic;
use crate::key::Identity;
use crate::record::{NEVER, Record};
use crate::topic::Topic;
use lanecast_wire::state::{
    STATE_CLIENT, STATE_CLIENT_GONE, STATE_DEFINE, STATE_FORGET, STATE_PUT, STATE_TOPIC,
    STATE_VIEW, StateHeader,
};
use zerocopy::IntoBytes;

/// Appends a record.
pub(crate) fn put(topic: u32, record: &Record, bytes: &mut Vec<u8>) {
    let name = record.name().unwrap_or_default().as_bytes();
    let header = StateHeader {
        kind: STATE_PUT.into(),
        name_length: (name.len() as u16).into(),
        length: (record.bytes().len() as u32).into(),
        topic: topic.into(),
        sequence: record.sequence().into(),
        expires_unix_ns: record.expires_ns().unwrap_or(NEVER).into(),
        key: record.identity().checksum.into(),
        proof: record.identity().proof.into(),
        ..StateHeader::default()
    };
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(record.bytes());
}

/// Appends a removal.
pub(crate) fn gone(topic: u32, kind: u16, identity: Identity, sequence: u64, bytes: &mut Vec<u8>) {
    let header = StateHeader {
        kind: kind.into(),
        topic: topic.into(),
        sequence: sequence.into(),
        expires_unix_ns: NEVER.into(),
        key: identity.checksum.into(),
        proof: identity.proof.into(),
        ..StateHeader::default()
    };
    bytes.extend_from_slice(header.as_bytes());
}

/// Appends a client's last sequence and its time.
pub(crate) fn client(name: &str, sequence: u64, unix_ns: u64, bytes: &mut Vec<u8>) {
    let header = StateHeader {
        kind: STATE_CLIENT.into(),
        name_length: (name.len() as u16).into(),
        sequence: sequence.into(),
        expires_unix_ns: NEVER.into(),
        key: unix_ns.into(),
        ..StateHeader::default()
    };
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(name.as_bytes());
}

/// Appends the removal of a client's sequence.
pub(crate) fn client_gone(name: &str, bytes: &mut Vec<u8>) {
    named(STATE_CLIENT_GONE, 0, name, "", bytes);
}

/// Entry with a topic's definition.
pub(crate) fn define(topic: u32, name: &str, definition: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    named(STATE_DEFINE, topic, name, definition, &mut bytes);
    bytes
}

/// Entry that drops a topic.
pub(crate) fn forget(topic: u32, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    named(STATE_FORGET, topic, name, "", &mut bytes);
    bytes
}

/// Entry with a view's definition; an empty one drops the view.
pub(crate) fn view(name: &str, definition: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    named(STATE_VIEW, 0, name, definition, &mut bytes);
    bytes
}

fn named(kind: u16, topic: u32, name: &str, text: &str, bytes: &mut Vec<u8>) {
    let name = &name.as_bytes()[..name.len().min(u16::MAX.into())];
    let header = StateHeader {
        kind: kind.into(),
        name_length: (name.len() as u16).into(),
        length: (text.len() as u32).into(),
        topic: topic.into(),
        expires_unix_ns: NEVER.into(),
        ..StateHeader::default()
    };
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(text.as_bytes());
}

/// Appends the start of a topic's records in a checkpoint, with its definition.
pub(crate) fn begins(topic: &Topic, bytes: &mut Vec<u8>) {
    let definition = text_of_topic(topic.definition());
    let name = topic.definition().name.as_bytes();
    let name = &name[..name.len().min(u16::MAX.into())];
    let header = StateHeader {
        kind: STATE_TOPIC.into(),
        name_length: (name.len() as u16).into(),
        length: (definition.len() as u32).into(),
        topic: topic.number().into(),
        sequence: topic.sequence().into(),
        expires_unix_ns: NEVER.into(),
        key: (topic.len() as u64).into(),
        ..StateHeader::default()
    };
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(definition.as_bytes());
}
