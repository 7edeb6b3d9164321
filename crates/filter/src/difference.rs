//! Computes a delta: the fields that changed between two versions of a message.

use crate::malformed::{Malformed, MalformedReason};
use crate::members::{fields, is_object, members};
use crate::merge::{DeltaError, LEVELS_MAX, Text, check_whole, write_fields};
use crate::message_type::{Format, MessageType};
use crate::path::{Path, Step};

/// Appends the delta from `old` to `new` to `out`, with the fields `keys` always included, and
/// returns the number of changed fields.
///
/// Merging the delta into `old` gives `new`, except that removed fields are present as NULL: an
/// empty field of FIX, `null` in JSON.
///
/// # Errors
///
/// If one of the messages is malformed, or the message type has no deltas. `out` is unchanged then.
pub fn difference(
    format: impl Into<Format>,
    old: &[u8],
    new: &[u8],
    keys: &[Path],
    out: &mut Vec<u8>,
) -> Result<usize, DeltaError> {
    let (format, length) = (format.into(), out.len());
    let keys: Vec<&[Step]> = keys.iter().map(Path::steps).collect();
    let result = match format.message_type() {
        MessageType::Fix | MessageType::Nvfix => field_changes(format, old, new, &keys, out),
        MessageType::Json => whole_changes(Text::new(old), Text::new(new), &keys, out),
        message_type @ (MessageType::Xml | MessageType::Binary) => {
            Err(DeltaError::NoDeltas(message_type))
        }
    };
    // A failure leaves `out` as the caller passed it.
    if result.is_err() {
        out.truncate(length);
    }
    result
}

fn field_changes(
    format: Format,
    old: &[u8],
    new: &[u8],
    keys: &[&[Step]],
    out: &mut Vec<u8>,
) -> Result<usize, DeltaError> {
    let old = fields(format, old).map_err(DeltaError::First)?;
    let new = fields(format, new).map_err(DeltaError::Second)?;
    let mut changes = 0;
    for (name, values) in &new.list {
        let is_key = |key: &&[Step]| key.len() == 1 && key[0].name().as_bytes() == &**name;
        let is_changed = old.get(name) != Some(values);
        changes += usize::from(is_changed);
        if is_changed || keys.iter().any(is_key) {
            write_fields(format, name, values, out);
        }
    }
    // A field that was NULL before needs no removal.
    let is_null = |values: &Vec<&[u8]>| values.iter().all(|value| value.is_empty());
    for (name, values) in &old.list {
        if new.get(name).is_none() && !is_null(values) {
            write_fields(format, name, &[b""], out);
            changes += 1;
        }
    }
    Ok(changes)
}

fn whole_changes(
    old: Text<'_>,
    new: Text<'_>,
    keys: &[&[Step]],
    out: &mut Vec<u8>,
) -> Result<usize, DeltaError> {
    if is_object(old.bytes) && is_object(new.bytes) {
        return member_changes(old, new, keys, 0, out);
    }
    check_whole(old).map_err(DeltaError::First)?;
    check_whole(new).map_err(DeltaError::Second)?;
    out.extend_from_slice(new.bytes);
    Ok(usize::from(old.bytes != new.bytes))
}

/// Appends an object of the members that changed between two objects, and of the keys.
fn member_changes(
    old: Text<'_>,
    new: Text<'_>,
    keys: &[&[Step]],
    level: usize,
    out: &mut Vec<u8>,
) -> Result<usize, DeltaError> {
    // The limit bounds the recursion.
    if level == LEVELS_MAX {
        return Err(DeltaError::Second(Malformed::new(new.at, MalformedReason::TooDeep)));
    }
    let old = members(old.bytes, old.at).map_err(DeltaError::First)?;
    let new = members(new.bytes, new.at).map_err(DeltaError::Second)?;
    let mut changes = 0;
    out.push(b'{');
    let start = out.len();
    for (name, member) in &new.list {
        let length = out.len();
        // The name comes first and is cut off again if its value is unchanged.
        write_name(member.name, start, out);
        let below = keys.iter().filter_map(|key| key.split_first());
        let below = below.filter(|(step, _)| step.name().as_bytes() == &**name);
        let below: Vec<&[Step]> = below.map(|(_, below)| below).collect();
        let is_key = below.iter().any(|key| key.is_empty());
        let before = old.get(name);
        let is_same = before.is_some_and(|before| before.value == member.value);
        match before {
            // Objects are compared member by member, so only nested changes are sent.
            Some(before) if is_object(before.value) && is_object(member.value) => {
                let before = Text { bytes: before.value, at: before.at };
                let after = Text { bytes: member.value, at: member.at };
                let behind_name = out.len();
                changes += member_changes(before, after, &below, level + 1, out)?;
                // An unchanged nested object leaves no trace, not even its name.
                if out[behind_name..] == *b"{}" {
                    out.truncate(length);
                }
            }
            _ if is_same && !is_key => out.truncate(length),
            _ => {
                changes += usize::from(!is_same);
                out.extend_from_slice(member.value);
            }
        }
    }
    for (name, member) in &old.list {
        // A member that was null before needs no removal.
        if new.get(name).is_none() && member.value != b"null" {
            write_name(member.name, start, out);
            out.extend_from_slice(b"null");
            changes += 1;
        }
    }
    out.push(b'}');
    Ok(changes)
}

/// Appends a member name; `start` is the position of the first member in the object being written.
fn write_name(name: &[u8], start: usize, out: &mut Vec<u8>) {
    if out.len() > start {
        out.push(b',');
    }
    out.extend_from_slice(name);
    out.push(b':');
}
