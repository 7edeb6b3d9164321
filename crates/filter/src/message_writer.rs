//! Writes messages from paths and values, for views and queries.

use crate::message_type::{Format, MessageType};
use crate::path::Path;
use crate::value::Value;
use std::fmt::Write as _;
use thiserror::Error;

/// Paths and values that cannot form a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MessageWriteError {
    /// Messages of this type cannot contain a field of this path.
    #[error("{path} cannot be a field of {message_type}: {hint}")]
    Path {
        /// Message type.
        message_type: MessageType,
        /// Path of the field.
        path: String,
        /// Hint.
        hint: &'static str,
    },
    /// The value at this path contains the field separator.
    #[error("the value of {0} contains the field separator")]
    Separator(String),
    /// The path leads to a value and to other fields.
    #[error("{0} is both a value and the parent of other fields: rename one of them")]
    Both(String),
    /// A binary message has no fields.
    #[error("binary messages have no fields: choose fix, nvfix, json or xml")]
    Binary,
}

/// Appends a message of `format` with `values` to `out`, in their order.
///
/// A repeated path becomes an array, a repeated field or a repeated element.
///
/// # Errors
///
/// If the format cannot contain such fields. `out` is unchanged then.
pub fn write_message(
    format: impl Into<Format>,
    values: &[(&Path, Value<'_>)],
    out: &mut Vec<u8>,
) -> Result<(), MessageWriteError> {
    let (format, length) = (format.into(), out.len());
    let result = match format.message_type() {
        MessageType::Fix | MessageType::Nvfix => write_fields(format, values, out),
        MessageType::Json => {
            Branch::grow(format.message_type(), values).and_then(|root| root.write_json(out))
        }
        MessageType::Xml => {
            Branch::grow(format.message_type(), values).and_then(|root| root.write_document(out))
        }
        MessageType::Binary => Err(MessageWriteError::Binary),
    };
    if result.is_err() {
        out.truncate(length);
    }
    result
}

fn path_error(message_type: MessageType, path: &Path, hint: &'static str) -> MessageWriteError {
    MessageWriteError::Path { message_type, path: path.to_string(), hint }
}

fn write_fields(
    format: Format,
    values: &[(&Path, Value<'_>)],
    out: &mut Vec<u8>,
) -> Result<(), MessageWriteError> {
    let (message_type, separators) =
        (format.message_type(), [format.field_separator(), format.pair_separator()]);
    for (path, value) in values {
        let name = path.single_name().ok_or(path_error(
            message_type,
            path,
            "it needs one name, as `/55`",
        ))?;
        if message_type == MessageType::Fix && !name.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(path_error(message_type, path, "its names are numbers, as `/55`"));
        }
        if name.bytes().any(|byte| separators.contains(&byte)) {
            return Err(path_error(message_type, path, "its name has a separator in it"));
        }
        out.extend_from_slice(name.as_bytes());
        out.push(format.pair_separator());
        let start = out.len();
        write_plain(*value, out);
        // Readers would split the value there; FIX has no escapes.
        if out[start..].contains(&format.field_separator()) {
            return Err(MessageWriteError::Separator(path.to_string()));
        }
        out.push(format.field_separator());
    }
    Ok(())
}

/// Appends a value as text without escapes; nothing for NULL.
fn write_plain(value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::Bool(truth) => out.extend_from_slice(if truth { b"true" } else { b"false" }),
        Value::Text(text) => out.extend_from_slice(text),
        Value::Int(_) | Value::Uint(_) | Value::Float(_) => {
            // Numbers go through a text, because `out` holds bytes.
            let mut text = String::new();
            if let Some(number) = value.number() {
                let _ = write!(text, "{number}");
            }
            out.extend_from_slice(text.as_bytes());
        }
    }
}

/// Tree of names, built before a JSON or XML message is written.
#[derive(Debug, Default)]
struct Branch<'a> {
    name: &'a str,
    values: Vec<Value<'a>>,
    attributes: Vec<(&'a str, Value<'a>)>,
    children: Vec<Branch<'a>>,
}

impl<'a> Branch<'a> {
    fn grow(
        message_type: MessageType,
        values: &[(&'a Path, Value<'a>)],
    ) -> Result<Self, MessageWriteError> {
        let mut root = Self::default();
        for (path, value) in values {
            let mut branch = &mut root;
            for step in path.steps() {
                let name = step.name();
                if step.index().is_some() {
                    return Err(path_error(
                        message_type,
                        path,
                        "repeat the path instead of its subscript",
                    ));
                }
                if message_type == MessageType::Xml && !is_xml_name(name) {
                    return Err(path_error(message_type, path, "its names must be names of XML"));
                }
                if step.is_attribute() {
                    if message_type == MessageType::Json {
                        return Err(path_error(message_type, path, "it has no attributes"));
                    }
                    branch.attributes.push((name, *value));
                    continue;
                }
                let known = branch.children.iter().position(|child| child.name == name);
                let index = known.unwrap_or(branch.children.len());
                if known.is_none() {
                    branch.children.push(Self { name, ..Self::default() });
                }
                branch = &mut branch.children[index];
            }
            // An attribute took the value already.
            if !path.steps().last().is_some_and(crate::path::Step::is_attribute) {
                branch.values.push(*value);
            }
            if message_type == MessageType::Json
                && !branch.values.is_empty()
                && !branch.children.is_empty()
            {
                return Err(MessageWriteError::Both(path.to_string()));
            }
        }
        Ok(root)
    }

    fn write_json(&self, out: &mut Vec<u8>) -> Result<(), MessageWriteError> {
        match &self.values[..] {
            [] => {
                out.push(b'{');
                for (index, child) in self.children.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_string(child.name.as_bytes(), out);
                    out.push(b':');
                    child.write_json(out)?;
                }
                out.push(b'}');
            }
            _ if !self.children.is_empty() => {
                // Children that came after the value are noticed here only.
                return Err(MessageWriteError::Both(format!("/{}", self.name)));
            }
            [value] => write_json_value(*value, out),
            values => {
                out.push(b'[');
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_json_value(*value, out);
                }
                out.push(b']');
            }
        }
        Ok(())
    }

    fn write_document(&self, out: &mut Vec<u8>) -> Result<(), MessageWriteError> {
        match &self.children[..] {
            // XML documents have exactly one root element.
            [root] if self.attributes.is_empty() && root.elements() == 1 => {
                root.write_element(out);
                Ok(())
            }
            children => Err(MessageWriteError::Path {
                message_type: MessageType::Xml,
                path: children.iter().map(|child| format!("/{}", child.name)).collect(),
                hint: "all paths must start with one and the same element",
            }),
        }
    }

    /// Number of elements to write: several for a repeated value without children.
    fn elements(&self) -> usize {
        // Attributes and children belong to one element, so only plain values repeat it.
        let is_repeated = self.attributes.is_empty() && self.children.is_empty();
        if is_repeated { self.values.len().max(1) } else { 1 }
    }

    fn write_element(&self, out: &mut Vec<u8>) {
        let count = self.elements();
        for index in 0..count {
            let values = if count > 1 { &self.values[index..=index] } else { &self.values[..] };
            out.push(b'<');
            out.extend_from_slice(self.name.as_bytes());
            for (name, value) in &self.attributes {
                out.push(b' ');
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b"=\"");
                write_markup(*value, out);
                out.push(b'"');
            }
            out.push(b'>');
            values.iter().for_each(|value| write_markup(*value, out));
            self.children.iter().for_each(|child| child.write_element(out));
            out.extend_from_slice(b"</");
            out.extend_from_slice(self.name.as_bytes());
            out.push(b'>');
        }
    }
}

fn is_xml_name(name: &str) -> bool {
    let is_odd = |character: char| {
        character.is_ascii() && !character.is_ascii_alphanumeric() && !"_:-.".contains(character)
    };
    let starts_well = name.starts_with(|character: char| {
        !character.is_ascii_digit() && !matches!(character, '-' | '.')
    });
    starts_well && !name.contains(is_odd) && !name.contains(char::is_whitespace)
}

fn write_json_value(value: Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Text(text) => write_string(text, out),
        Value::Null => out.extend_from_slice(b"null"),
        // JSON has neither infinity nor NaN.
        Value::Float(number) if !number.is_finite() => out.extend_from_slice(b"null"),
        value => write_plain(value, out),
    }
}

/// Appends a JSON string; invalid UTF-8 becomes the replacement character.
fn write_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    // JSON is UTF-8, so invalid bytes are replaced.
    for byte in String::from_utf8_lossy(text).bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            // JSON allows control characters as escapes only.
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            byte => out.push(byte),
        }
    }
    out.push(b'"');
}

/// Appends a value as escaped XML text.
fn write_markup(value: Value<'_>, out: &mut Vec<u8>) {
    let mut plain = Vec::new();
    write_plain(value, &mut plain);
    for byte in plain {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            byte => out.push(byte),
        }
    }
}
