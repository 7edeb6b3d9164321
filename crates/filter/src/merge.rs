//! Applies a delta to a message: fields in the delta are replaced, all others kept.

use crate::malformed::{Malformed, MalformedReason};
use crate::members::{fields, is_object, members};
use crate::message_type::{Format, MessageType};
use thiserror::Error;

/// Nesting levels of objects in deltas.
pub(crate) const LEVELS_MAX: usize = 64;

/// Errors of merges and differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DeltaError {
    /// The first message (base or old version) is malformed.
    #[error("the first message: {0}")]
    First(Malformed),
    /// The second message (delta or new version) is malformed.
    #[error("the second message: {0}")]
    Second(Malformed),
    /// Messages of this type have no deltas.
    #[error("{0} messages have no deltas: publish whole messages, or use fix, nvfix or json")]
    NoDeltas(MessageType),
}

/// Appends `base` with `delta` applied to `out`.
///
/// Fields missing in `delta` are kept byte for byte, new fields are appended. JSON objects are
/// merged member by member; arrays and repeated FIX fields are replaced as a whole.
///
/// # Errors
///
/// If one of the messages is malformed, or the message type has no deltas. `out` is unchanged then.
pub fn merge(
    format: impl Into<Format>,
    base: &[u8],
    delta: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), DeltaError> {
    let (format, length) = (format.into(), out.len());
    let result = match format.message_type() {
        MessageType::Fix | MessageType::Nvfix => merge_fields(format, base, delta, out),
        MessageType::Json => merge_values(Text::new(base), Text::new(delta), 0, out),
        message_type @ (MessageType::Xml | MessageType::Binary) => {
            Err(DeltaError::NoDeltas(message_type))
        }
    };
    // A half-merged message must not stay in `out`.
    if result.is_err() {
        out.truncate(length);
    }
    result
}

fn merge_fields(
    format: Format,
    base: &[u8],
    delta: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), DeltaError> {
    let base = fields(format, base).map_err(DeltaError::First)?;
    let delta = fields(format, delta).map_err(DeltaError::Second)?;
    for (name, values) in &base.list {
        // A name in the delta replaces all values of that name.
        write_fields(format, name, delta.get(name).unwrap_or(values), out);
    }
    for (name, values) in delta.list.iter().filter(|(name, _)| base.get(name).is_none()) {
        write_fields(format, name, values, out);
    }
    Ok(())
}

/// Appends one field for each of `values`.
pub(crate) fn write_fields(format: Format, name: &[u8], values: &[&[u8]], out: &mut Vec<u8>) {
    for value in values {
        out.extend_from_slice(name);
        out.push(format.pair_separator());
        out.extend_from_slice(value);
        out.push(format.field_separator());
    }
}

/// A JSON value and its byte offset in the message.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Text<'a> {
    /// A whole message, trimmed.
    pub(crate) fn new(message: &'a [u8]) -> Self {
        // Positions count the blanks before the message.
        let bytes = message.trim_ascii_start();
        Self { bytes: bytes.trim_ascii_end(), at: message.len() - bytes.len() }
    }
}

fn merge_values(
    base: Text<'_>,
    delta: Text<'_>,
    level: usize,
    out: &mut Vec<u8>,
) -> Result<(), DeltaError> {
    if !is_object(base.bytes) || !is_object(delta.bytes) {
        // Members are checked while their object is split.
        if level == 0 {
            check_whole(base).map_err(DeltaError::First)?;
            check_whole(delta).map_err(DeltaError::Second)?;
        }
        out.extend_from_slice(delta.bytes);
        return Ok(());
    }
    if level == LEVELS_MAX {
        return Err(DeltaError::Second(Malformed::new(delta.at, MalformedReason::TooDeep)));
    }
    let old = members(base.bytes, base.at).map_err(DeltaError::First)?;
    let new = members(delta.bytes, delta.at).map_err(DeltaError::Second)?;
    out.push(b'{');
    // New members follow the existing ones, which keep their order.
    let added = new.list.iter().filter(|(name, _)| old.get(name).is_none());
    for (index, (name, member)) in old.list.iter().chain(added).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(member.name);
        out.push(b':');
        match (old.get(name), new.get(name)) {
            // Present in both: objects merge recursively, other values take the delta.
            (Some(old), Some(new)) => {
                let old = Text { bytes: old.value, at: old.at };
                merge_values(old, Text { bytes: new.value, at: new.at }, level + 1, out)?;
            }
            _ => out.extend_from_slice(member.value),
        }
    }
    out.push(b'}');
    Ok(())
}

/// Checks that a message that is not an object is a single JSON value.
pub(crate) fn check_whole(text: Text<'_>) -> Result<(), Malformed> {
    // Wrapped as the only member of an object, the value passes through the member parser's checks.
    let wrapped = [b"{\"\":", text.bytes, b"}"].concat();
    let members = members(&wrapped, 0).map_err(|error| {
        Malformed::new(text.at + error.offset.saturating_sub(4).min(text.bytes.len()), error.reason)
    })?;
    match &members.list[..] {
        [(_, member)] if member.value.len() == text.bytes.len() => Ok(()),
        _ => Err(Malformed::new(text.at, MalformedReason::Unexpected)),
    }
}
