//! Changes and records as bytes.

use crate::key::Identity;
use crate::record::{NEVER, Record};
use lanecast_wire::state::{STATE_CLIENT, STATE_PUT, STATE_TOPIC, StateHeader};
use zerocopy::IntoBytes;

/// Appends what `record` is.
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

/// Appends that a record is gone.
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

/// Appends which number a client gave its last message.
pub(crate) fn client(name: &str, sequence: u64, bytes: &mut Vec<u8>) {
    let header = StateHeader {
        kind: STATE_CLIENT.into(),
        name_length: (name.len() as u16).into(),
        sequence: sequence.into(),
        expires_unix_ns: NEVER.into(),
        ..StateHeader::default()
    };
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(name.as_bytes());
}

/// Appends that the records of a topic begin.
pub(crate) fn begins(topic: u32, name: &str, sequence: u64, records: usize, bytes: &mut Vec<u8>) {
    let name = &name.as_bytes()[..name.len().min(u16::MAX.into())];
    let header = StateHeader {
        kind: STATE_TOPIC.into(),
        name_length: (name.len() as u16).into(),
        topic: topic.into(),
        sequence: sequence.into(),
        expires_unix_ns: NEVER.into(),
        key: (records as u64).into(),
        ..StateHeader::default()
    };
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(name);
}
