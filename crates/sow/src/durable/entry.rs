//! Encoding of journal and checkpoint entries.
//!
//! A length that was cut would have the next start read the rest of a name as further entries, so
//! what is too long for its header is refused.

use super::definition_text::text_of_topic;
use crate::key::Identity;
use crate::record::{NEVER, Record};
use crate::topic::Topic;
use lanecast_journal::AppendError;
use lanecast_wire::state::{
    STATE_CLIENT, STATE_CLIENT_GONE, STATE_DEFINE, STATE_FORGET, STATE_PUT, STATE_TOPIC,
    STATE_VIEW, StateHeader,
};
use zerocopy::IntoBytes;

/// Appends a record.
pub(crate) fn put(topic: u32, record: &Record, bytes: &mut Vec<u8>) -> Result<(), AppendError> {
    let header = StateHeader {
        kind: STATE_PUT.into(),
        topic: topic.into(),
        sequence: record.sequence().into(),
        expires_unix_ns: record.expires_ns().unwrap_or(NEVER).into(),
        key: record.identity().checksum.into(),
        proof: record.identity().proof.into(),
        ..StateHeader::default()
    };
    write(header, record.name().unwrap_or_default(), record.bytes(), bytes)
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
pub(crate) fn client(
    name: &str,
    sequence: u64,
    unix_ns: u64,
    bytes: &mut Vec<u8>,
) -> Result<(), AppendError> {
    let header = StateHeader {
        kind: STATE_CLIENT.into(),
        sequence: sequence.into(),
        expires_unix_ns: NEVER.into(),
        key: unix_ns.into(),
        ..StateHeader::default()
    };
    write(header, name, b"", bytes)
}

/// Appends the removal of a client's sequence.
pub(crate) fn client_gone(name: &str, bytes: &mut Vec<u8>) -> Result<(), AppendError> {
    write(header(STATE_CLIENT_GONE, 0), name, b"", bytes)
}

/// Entry with a topic's definition.
pub(crate) fn define(topic: u32, name: &str, definition: &str) -> Result<Vec<u8>, AppendError> {
    let mut bytes = Vec::new();
    write(header(STATE_DEFINE, topic), name, definition.as_bytes(), &mut bytes)?;
    Ok(bytes)
}

/// Entry that drops a topic.
pub(crate) fn forget(topic: u32, name: &str) -> Result<Vec<u8>, AppendError> {
    let mut bytes = Vec::new();
    write(header(STATE_FORGET, topic), name, b"", &mut bytes)?;
    Ok(bytes)
}

/// Entry with a view's definition; an empty one drops the view.
pub(crate) fn view(name: &str, definition: &str) -> Result<Vec<u8>, AppendError> {
    let mut bytes = Vec::new();
    write(header(STATE_VIEW, 0), name, definition.as_bytes(), &mut bytes)?;
    Ok(bytes)
}

/// Appends the start of a topic's records in a checkpoint, with its definition.
pub(crate) fn begins(topic: &Topic, bytes: &mut Vec<u8>) -> Result<(), AppendError> {
    let definition = text_of_topic(topic.definition());
    let header = StateHeader {
        sequence: topic.sequence().into(),
        key: (topic.len() as u64).into(),
        ..header(STATE_TOPIC, topic.number())
    };
    write(header, &topic.definition().name, definition.as_bytes(), bytes)
}

fn header(kind: u16, topic: u32) -> StateHeader {
    StateHeader {
        kind: kind.into(),
        topic: topic.into(),
        expires_unix_ns: NEVER.into(),
        ..StateHeader::default()
    }
}

/// Appends an entry; `header` gets its lengths here.
fn write(
    header: StateHeader,
    name: &str,
    message: &[u8],
    bytes: &mut Vec<u8>,
) -> Result<(), AppendError> {
    let name_length = u16::try_from(name.len()).map_err(|_| AppendError::TooLong)?;
    let length = u32::try_from(message.len()).map_err(|_| AppendError::TooLong)?;
    let header = StateHeader { name_length: name_length.into(), length: length.into(), ..header };
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(message);
    Ok(())
}
