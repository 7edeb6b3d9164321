//! Writes the records of a view. The constant text between the values is prepared once.

use super::decimal::Rounding;
use super::value::ViewValue;
use lanecast_filter::message_type::{Format, MessageType};
use lanecast_filter::path::Path;
use thiserror::Error;

/// Prepared text of a view's records.
#[derive(Clone, Debug)]
pub(crate) struct RecordWriter {
    format: Format,
    rounding: Rounding,
    /// Text before each value, and the value's field.
    pieces: Vec<(Box<[u8]>, usize)>,
    tail: Box<[u8]>,
}

/// Reason why a format does not support a field.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum UnsupportedField {
    #[error("binary messages have no fields")]
    NoFields,
    #[error("fields of FIX are numbers: project into nvfix, or write AS /6001 or the like")]
    NoTag,
    #[error("{0} messages are flat, and its names hold no separators: write AS /name")]
    NoName(MessageType),
    #[error("a view writes whole fields: leave out the subscript")]
    Subscript,
    #[error("only XML has attributes: leave out the @")]
    Attribute,
    #[error("XML has one element around all others: let all paths start alike, as in /row/a")]
    NoRoot,
    #[error("names of XML start with a letter and hold letters, digits and _-.: only")]
    BadName,
    #[error("another field has this name, or stands within it")]
    Taken,
}

/// Reason why a record cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteError {
    /// A value contains the field separator.
    InvalidValue { field: usize },
    /// The record would have more bytes than allowed.
    TooLong,
}

/// Tree of fields, by name.
#[derive(Debug, Default)]
struct Node<'a> {
    name: &'a str,
    is_attribute: bool,
    field: Option<usize>,
    below: Vec<Self>,
}

impl RecordWriter {
    /// Prepares a writer for fields with these paths.
    ///
    /// # Errors
    /// If the format does not support a field: its number and the reason.
    pub(crate) fn new(
        format: Format,
        paths: &[Path],
        rounding: Rounding,
    ) -> Result<Self, (usize, UnsupportedField)> {
        let mut record_writer = Self { format, rounding, pieces: Vec::new(), tail: Box::default() };
        let mut root = Node::default();
        for (field, path) in paths.iter().enumerate() {
            record_writer
                .check(path)
                .and_then(|()| root.insert(path, field))
                .map_err(|what| (field, what))?;
        }
        let mut text = Vec::new();
        match format.message_type() {
            MessageType::Json => record_writer.object(&root, &mut text),
            MessageType::Xml => {
                if let [_, second, ..] = &*root.below {
                    return Err((second.first_field(), UnsupportedField::NoRoot));
                }
                root.below.iter().for_each(|node| record_writer.element(node, &mut text));
            }
            _ => root.below.iter().for_each(|node| {
                text.extend_from_slice(node.name.as_bytes());
                text.push(format.pair_separator());
                record_writer.value(node, &mut text);
            }),
        }
        record_writer.tail = text.into();
        Ok(record_writer)
    }

    fn check(&self, path: &Path) -> Result<(), UnsupportedField> {
        let format = self.format;
        let kind = format.message_type();
        let steps = path.steps();
        let is_separator =
            |byte| [format.field_separator(), format.pair_separator()].contains(&byte);
        match (kind, path.single_name()) {
            (MessageType::Binary, _) => Err(UnsupportedField::NoFields),
            (MessageType::Fix, Some(name)) if name.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(())
            }
            (MessageType::Fix, _) => Err(UnsupportedField::NoTag),
            (MessageType::Nvfix, Some(name)) if !name.bytes().any(is_separator) => Ok(()),
            (MessageType::Nvfix, _) => Err(UnsupportedField::NoName(kind)),
            _ if steps.iter().any(|step| step.index().is_some()) => {
                Err(UnsupportedField::Subscript)
            }
            (MessageType::Json, _) if steps.iter().any(|step| step.is_attribute()) => {
                Err(UnsupportedField::Attribute)
            }
            (MessageType::Xml, _) if steps[0].is_attribute() => Err(UnsupportedField::NoRoot),
            (MessageType::Xml, _) if !steps.iter().all(|step| is_xml_name(step.name())) => {
                Err(UnsupportedField::BadName)
            }
            _ => Ok(()),
        }
    }

    /// Ends the text before the value of `node`.
    fn value(&mut self, node: &Node<'_>, text: &mut Vec<u8>) {
        if let Some(field) = node.field {
            self.pieces.push((std::mem::take(text).into(), field));
        }
    }

    fn object(&mut self, node: &Node<'_>, text: &mut Vec<u8>) {
        text.push(b'{');
        for (number, child) in node.below.iter().enumerate() {
            text.extend_from_slice(if number == 0 { b"" } else { b"," });
            quote_json(child.name.as_bytes(), text);
            text.push(b':');
            match child.field {
                Some(_) => self.value(child, text),
                None => self.object(child, text),
            }
        }
        text.push(b'}');
    }

    fn element(&mut self, node: &Node<'_>, text: &mut Vec<u8>) {
        let tag = |opening: &[u8]| [opening, node.name.as_bytes()].concat();
        text.extend_from_slice(&tag(b"<"));
        for attribute in node.below.iter().filter(|child| child.is_attribute) {
            text.extend_from_slice(&[b" ", attribute.name.as_bytes(), b"=\""].concat());
            self.value(attribute, text);
            text.push(b'"');
        }
        text.push(b'>');
        self.value(node, text);
        for child in node.below.iter().filter(|child| !child.is_attribute) {
            self.element(child, text);
        }
        text.extend_from_slice(&tag(b"</"));
        text.push(b'>');
    }

    /// Writes a record of at most `bytes_max` bytes into the empty `record`; `value` returns the
    /// value of a field.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub(crate) fn write<'a>(
        &self,
        mut value: impl FnMut(usize) -> ViewValue<'a>,
        bytes_max: usize,
        record: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let is_flat = matches!(self.format.message_type(), MessageType::Fix | MessageType::Nvfix);
        for (before, field) in &self.pieces {
            let value = value(*field);
            if is_flat && matches!(value, ViewValue::Null | ViewValue::Nan) {
                continue;
            }
            record.extend_from_slice(before);
            let start = record.len();
            self.write_value(&value, record);
            if is_flat {
                let separator = self.format.field_separator();
                if record[start..].contains(&separator) {
                    return Err(WriteError::InvalidValue { field: *field });
                }
                record.push(separator);
            }
            // Here as well, so that many long values do not take the memory first.
            if record.len() > bytes_max {
                return Err(WriteError::TooLong);
            }
        }
        record.extend_from_slice(&self.tail);
        if record.len() > bytes_max { Err(WriteError::TooLong) } else { Ok(()) }
    }

    #[inline]
    fn write_value(&self, value: &ViewValue<'_>, record: &mut Vec<u8>) {
        let kind = self.format.message_type();
        match value {
            ViewValue::Null | ViewValue::Nan if kind == MessageType::Json => {
                record.extend_from_slice(b"null")
            }
            ViewValue::Null | ViewValue::Nan => {}
            ViewValue::Bool(true) => record.extend_from_slice(b"true"),
            ViewValue::Bool(false) => record.extend_from_slice(b"false"),
            ViewValue::Number(number) => number.write(self.rounding, record),
            ViewValue::Text(text) => match kind {
                MessageType::Json => quote_json(text, record),
                MessageType::Xml => escape_xml(text, record),
                _ => record.extend_from_slice(text),
            },
        }
    }
}

impl<'a> Node<'a> {
    fn insert(&mut self, path: &'a Path, field: usize) -> Result<(), UnsupportedField> {
        let mut node = self;
        for step in path.steps() {
            if node.field.is_some() && !step.is_attribute() {
                return Err(UnsupportedField::Taken);
            }
            let (name, is_attribute) = (step.name(), step.is_attribute());
            let same = |child: &Self| child.name == name && child.is_attribute == is_attribute;
            let at = node.below.iter().position(same).unwrap_or_else(|| {
                node.below.push(Self { name, is_attribute, ..Self::default() });
                node.below.len() - 1
            });
            node = &mut node.below[at];
        }
        let has_children = node.below.iter().any(|child| !child.is_attribute);
        if has_children || node.field.is_some() {
            return Err(UnsupportedField::Taken);
        }
        node.field = Some(field);
        Ok(())
    }

    fn first_field(&self) -> usize {
        self.field.or(self.below.first().map(Self::first_field)).unwrap_or(0)
    }
}

fn is_xml_name(name: &str) -> bool {
    let starts = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
    starts
        && name.chars().all(|character| character.is_alphanumeric() || "_-.:".contains(character))
}

fn quote_json(text: &[u8], quoted: &mut Vec<u8>) {
    quoted.push(b'"');
    for character in String::from_utf8_lossy(text).chars() {
        match character {
            '"' | '\\' => quoted.extend_from_slice(&[b'\\', character as u8]),
            '\0'..='\x1F' => {
                quoted.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
            }
            _ => quoted.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    quoted.push(b'"');
}

/// XML cannot represent control characters: they are replaced by U+FFFD.
fn escape_xml(text: &[u8], escaped: &mut Vec<u8>) {
    for character in String::from_utf8_lossy(text).chars() {
        match character {
            '<' => escaped.extend_from_slice(b"&lt;"),
            '>' => escaped.extend_from_slice(b"&gt;"),
            '&' => escaped.extend_from_slice(b"&amp;"),
            '"' => escaped.extend_from_slice(b"&quot;"),
            '\t' | '\n' | '\r' => {
                escaped.extend_from_slice(format!("&#{};", u32::from(character)).as_bytes());
            }
            '\0'..='\x1F' => escaped.extend_from_slice("\u{FFFD}".as_bytes()),
            _ => escaped.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: impl Into<Format>, fields: &[(&str, &[u8])]) -> Result<String, WriteError> {
        let paths: Vec<Path> =
            fields.iter().map(|(path, _)| path.parse().expect("a path")).collect();
        let record_writer = RecordWriter::new(format.into(), &paths, Rounding::DEFAULT);
        let mut record = Vec::new();
        let value = |field: usize| match fields[field].1 {
            b"3" => ViewValue::from(lanecast_filter::value::Value::Int(3)),
            text => ViewValue::text(text),
        };
        record_writer.expect("it fits").write(value, usize::MAX, &mut record)?;
        Ok(String::from_utf8(record).expect("a text"))
    }

    #[test]
    fn each_format_has_its_way() {
        let nvfix =
            Format::new(MessageType::Nvfix).with_separators(b';', b'=').expect("they differ");
        let flat: &[(&str, &[u8])] = &[("/a", b"x"), ("/n", b""), ("/b", b"3")];
        assert_eq!(written(nvfix, flat).as_deref(), Ok("a=x;b=3;"));
        assert_eq!(
            written(nvfix, &[("/a", b"x"), ("/b", b";")]),
            Err(WriteError::InvalidValue { field: 1 })
        );
        let nested: &[(&str, &[u8])] =
            &[("/r/a", b"\"x\""), ("/r/b/c", b"3"), ("/r/n", b""), ("/r/b/d", b"<\n>")];
        assert_eq!(
            written(MessageType::Json, nested).as_deref(),
            Ok(r#"{"r":{"a":"\"x\"","b":{"c":3,"d":"<\u000a>"},"n":null}}"#)
        );
        assert_eq!(
            written(MessageType::Xml, nested).as_deref(),
            Ok("<r><a>&quot;x&quot;</a><b><c>3</c><d>&lt;&#10;&gt;</d></b><n></n></r>")
        );
        assert_eq!(
            written(MessageType::Xml, &[("/r/a", b"x"), ("/r/@i", b"3"), ("/r/a/@j", b"&")])
                .as_deref(),
            Ok(r#"<r i="3"><a j="&amp;">x</a></r>"#)
        );
    }

    #[test]
    fn values_that_a_format_cannot_express_are_refused() {
        for (kind, paths, field, misfit) in [
            (MessageType::Fix, &["/55", "/customer"][..], 1, UnsupportedField::NoTag),
            (MessageType::Nvfix, &["/a/b"], 0, UnsupportedField::NoName(MessageType::Nvfix)),
            (MessageType::Nvfix, &["/[a=b]"], 0, UnsupportedField::NoName(MessageType::Nvfix)),
            (MessageType::Json, &["/a[1]"], 0, UnsupportedField::Subscript),
            (MessageType::Json, &["/a/@b"], 0, UnsupportedField::Attribute),
            (MessageType::Json, &["/a/b", "/a"], 1, UnsupportedField::Taken),
            (MessageType::Json, &["/a", "/a/b"], 1, UnsupportedField::Taken),
            (MessageType::Nvfix, &["/a", "/a"], 1, UnsupportedField::Taken),
            (MessageType::Xml, &["/a", "/b/c"], 1, UnsupportedField::NoRoot),
            (MessageType::Xml, &["/@a"], 0, UnsupportedField::NoRoot),
            (MessageType::Xml, &["/a/[odd name]"], 0, UnsupportedField::BadName),
            (MessageType::Binary, &["/a"], 0, UnsupportedField::NoFields),
        ] {
            let paths: Vec<Path> = paths.iter().map(|path| path.parse().expect("a path")).collect();
            let refused = RecordWriter::new(kind.into(), &paths, Rounding::DEFAULT);
            assert_eq!(refused.expect_err("it does not fit"), (field, misfit));
        }
    }
}
