//! One line, or one JSON object, a frame.

use super::decode::{Decoded, SEALED};
use crate::printable::printable;
use crate::table::utc;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::net::SocketAddr;

/// Entries of a list that a line shows.
const LIST_MAX: usize = 4;

/// A frame that was seen, or the end of a connection.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    /// Nanoseconds since 1970.
    pub(super) at: u64,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) is_tcp: bool,
    /// `None`: the connection was reset.
    pub(super) frame: Option<&'a Decoded>,
}

impl Seen<'_> {
    const fn transport(&self) -> &'static str {
        if self.is_tcp { "tcp" } else { "udp" }
    }

    pub(super) fn to_line(&self) -> String {
        let mut line = format!("{} {} {} > {}", utc(self.at), self.transport(), self.from, self.to);
        let Some(frame) = self.frame else { return line + " connection reset" };
        line += " ";
        line += frame.name;
        for flag in &frame.flags {
            line += " ";
            line += flag;
        }
        let (session, sequence) = match frame.name {
            "Advert" | "Query" => ("resolver", None),
            SEALED => ("sender", Some("counter")),
            _ => ("session", Some("sequence")),
        };
        let _ = write!(line, " {session}={:016x}", frame.session);
        if let Some(sequence) = sequence {
            let _ = write!(line, " {sequence}={}", frame.sequence);
        }
        write_fields(&mut line, &frame.body);
        line
    }

    pub(super) fn to_json(&self) -> Value {
        let mut object = json!({
            "unix_ns": self.at,
            "transport": self.transport(),
            "from": self.from.to_string(),
            "to": self.to.to_string(),
        });
        let more = match self.frame {
            None => json!({ "kind": "connection reset" }),
            Some(frame) => json!({
                "kind": frame.name,
                "flags": frame.flags,
                "session": format!("{:016x}", frame.session),
                "sequence": frame.sequence,
                "body": frame.body,
            }),
        };
        if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
            object.extend(more);
        }
        object
    }
}

/// Writes the fields that are not 0, and the beginning of each list.
fn write_fields(line: &mut String, fields: &Map<String, Value>) {
    for (name, value) in fields {
        match value {
            Value::Array(list) if list.is_empty() => {}
            Value::Array(list) => {
                let shown: Vec<String> = list.iter().take(LIST_MAX).map(entry).collect();
                let more = list.len().saturating_sub(LIST_MAX);
                let more = if more > 0 { format!(", {more} more") } else { String::new() };
                let _ = write!(line, " {name}=[{}{more}]", shown.join(", "));
            }
            Value::Number(number) if number.as_u64() == Some(0) => {}
            value => {
                let _ = write!(line, " {name}={}", entry(value));
            }
        }
    }
}

/// An entry of a list.
fn entry(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text),
        Value::Object(fields) => {
            let mut text = String::new();
            write_fields(&mut text, fields);
            text.trim_start().to_owned()
        }
        other => other.to_string(),
    }
}
