//! Field selection of AMPS `select` lists: the part of a message that a subscriber receives.

use crate::malformed::{Malformed, MalformedReason};
use crate::members::{is_object, members};
use crate::message_type::{Format, MessageType};
use crate::path::{Path, PathError, Step};
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use thiserror::Error;

/// Nesting levels of objects.
const LEVELS_MAX: usize = 64;

/// A list of included and excluded fields: `-/,+/id,+/px` keeps two fields, `-/notes` removes one.
///
/// Unlisted fields are kept. The most specific entry for a field decides, the last one among
/// equals. The printed text is the original list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    text: Box<str>,
    root: Node,
}

/// Decision for a path and for the paths below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    stays: Option<bool>,
    below: Vec<(Box<str>, Node)>,
}

/// Errors of selection lists.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// The list is empty.
    #[error("an empty list: write it as in `-/,+/id,+/px`")]
    Empty,
    /// An entry has no sign.
    #[error("{0} has no sign: write +{0} if it is to stay, -{0} if it is to go")]
    NoSign(String),
    /// An entry is not a path.
    #[error("{path}: {error}")]
    Path {
        /// Text of the entry.
        path: String,
        /// Parse error.
        error: PathError,
    },
    /// Attributes and array elements cannot be selected.
    #[error("{0} names an attribute or has a subscript: fields stay or go as a whole")]
    Part(String),
}

impl FromStr for Selection {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, SelectionError> {
        let mut root = Node::default();
        // Empty entries between commas are tolerated.
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let mut count = 0;
        for entry in entries {
            count += 1;
            let (stays, path) = match entry.split_at_checked(1) {
                Some(("+", path)) => (true, path.trim()),
                Some(("-", path)) => (false, path.trim()),
                _ => return Err(SelectionError::NoSign(entry.to_owned())),
            };
            root.find(path)?.stays = Some(stays);
        }
        if count == 0 { Err(SelectionError::Empty) } else { Ok(Self { text: text.into(), root }) }
    }
}

impl Display for Selection {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Selection {
    /// Whether fields can be selected from messages of this type.
    pub fn is_for(message_type: MessageType) -> bool {
        matches!(message_type, MessageType::Fix | MessageType::Nvfix | MessageType::Json)
    }

    /// Appends the selected part of `message` to `out`, fields in their original order and bytes.
    /// Arrays are kept or removed as a whole, and a message without fields is copied.
    ///
    /// # Errors
    ///
    /// If the message is malformed. `out` is unchanged then.
    pub fn select(
        &self,
        format: impl Into<Format>,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let (format, length) = (format.into(), out.len());
        let stays = self.root.stays.unwrap_or(true);
        let done = match format.message_type() {
            MessageType::Fix | MessageType::Nvfix => {
                self.root.select_fields(format, message, stays, out)
            }
            MessageType::Json => {
                let text = message.trim_ascii_start();
                let at = message.len() - text.len();
                match text.trim_ascii_end() {
                    text if is_object(text) => self.root.select_members(text, at, stays, 0, out),
                    text => {
                        out.extend_from_slice(text);
                        Ok(())
                    }
                }
            }
            MessageType::Xml | MessageType::Binary => {
                out.extend_from_slice(message);
                Ok(())
            }
        };
        // A malformed message leaves nothing behind.
        if done.is_err() {
            out.truncate(length);
        }
        done
    }
}

impl Node {
    /// The node of a path, created if absent.
    fn find(&mut self, text: &str) -> Result<&mut Self, SelectionError> {
        if text == "/" {
            return Ok(self);
        }
        let path: Path =
            text.parse().map_err(|error| SelectionError::Path { path: text.to_owned(), error })?;
        let is_part = |step: &Step| step.is_attribute() || step.index().is_some();
        if path.steps().iter().any(is_part) {
            return Err(SelectionError::Part(text.to_owned()));
        }
        let mut node = self;
        for step in path.steps() {
            let known = node.below.iter().position(|(name, _)| **name == *step.name());
            let at = known.unwrap_or(node.below.len());
            if known.is_none() {
                node.below.push((step.name().into(), Self::default()));
            }
            node = &mut node.below[at].1;
        }
        Ok(node)
    }

    /// Entry for the field `name` below this node.
    fn below(&self, name: &[u8]) -> Option<&Self> {
        self.below.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, node)| node)
    }

    fn select_fields(
        &self,
        format: Format,
        message: &[u8],
        stays: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        let mut start = 0;
        // Fields keep their separator, so the copy needs none added.
        for field in message.split_inclusive(|byte| *byte == format.field_separator()) {
            let middle = field.iter().position(|byte| *byte == format.pair_separator());
            let middle = middle.ok_or(Malformed::new(start, MalformedReason::NoValue))?;
            let node = self.below(&field[..middle]);
            if node.and_then(|node| node.stays).unwrap_or(stays) {
                out.extend_from_slice(field);
            }
            start += field.len();
        }
        Ok(())
    }

    fn select_members(
        &self,
        object: &[u8],
        at: usize,
        stays: bool,
        level: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        if level == LEVELS_MAX {
            return Err(Malformed::new(at, MalformedReason::TooDeep));
        }
        let members = members(object, at)?;
        out.push(b'{');
        let start = out.len();
        for (name, member) in &members.list {
            let node = self.below(name);
            let stays = node.and_then(|node| node.stays).unwrap_or(stays);
            // Only an object with entries below it has to be split.
            let inner = node.filter(|node| !node.below.is_empty() && is_object(member.value));
            if !stays && inner.is_none() {
                continue;
            }
            let before = out.len();
            if before > start {
                out.push(b',');
            }
            out.extend_from_slice(member.name);
            out.push(b':');
            let Some(node) = inner else {
                out.extend_from_slice(member.value);
                continue;
            };
            let behind_name = out.len();
            node.select_members(member.value, member.at, stays, level + 1, out)?;
            // An excluded object remains only if one of its members was included.
            if !stays && out[behind_name..] == *b"{}" {
                out.truncate(before);
            }
        }
        out.push(b'}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(list: &str, kind: MessageType, message: &str) -> String {
        let selection: Selection = list.parse().expect(list);
        assert_eq!(selection.to_string(), list);
        let mut out = b"before ".to_vec();
        selection.select(kind, message.as_bytes(), &mut out).expect(message);
        String::from_utf8(out).expect("text").split_off("before ".len())
    }

    #[test]
    fn fields_stay_and_go_by_the_entry_that_says_most() {
        let message = r#"{"id":1, "px": 2.50,"legs":[{"id":2}],"at":{"x":1,"y":{"z":[3]}}}"#;
        for (list, expected) in [
            ("-/,+/id,+/px", r#"{"id":1,"px":2.50}"#),
            ("-/legs,-/at/y", r#"{"id":1,"px":2.50,"at":{"x":1}}"#),
            ("-/,+/at/y", r#"{"at":{"y":{"z":[3]}}}"#),
            ("+/at/x,-/at,-/,+/legs", r#"{"legs":[{"id":2}],"at":{"x":1}}"#),
            ("-/,+/none/below,+/at/none", "{}"),
            ("-/id,+/id,-/at,-/legs", r#"{"id":1,"px":2.50}"#),
        ] {
            assert_eq!(selected(list, MessageType::Json, message), expected, "{list}");
        }
        assert_eq!(selected("-/", MessageType::Json, " 7 "), "7");
        let message = "35=D\u{1}55=IBM\u{1}448=A\u{1}447=D\u{1}448=B\u{1}447=E\u{1}";
        assert_eq!(
            selected("-/,+/35,+/447", MessageType::Fix, message),
            "35=D\u{1}447=D\u{1}447=E\u{1}"
        );
        let left = "35=D\u{1}448=A\u{1}447=D\u{1}448=B\u{1}447=E\u{1}";
        assert_eq!(selected("-/55", MessageType::Fix, message), left);
    }

    #[test]
    fn an_invalid_selection_is_refused_with_a_reason() {
        for (list, part) in [
            (" ", "empty list"),
            ("/id", "+/id if it is to stay"),
            ("-/,+id", "id: "),
            ("+/a[0]", "subscript"),
            ("+/a/@b", "attribute"),
        ] {
            let error = list.parse::<Selection>().expect_err(list).to_string();
            assert!(error.contains(part), "{list}: {error}");
        }
        let selection: Selection = "-/a/x".parse().expect("a list");
        let mut out = b"x".to_vec();
        selection.select(MessageType::Json, br#"{"a":{"b":}}"#, &mut out).expect_err("no value");
        selection.select(MessageType::Fix, b"35=D\x0155\x01", &mut out).expect_err("no value");
        assert_eq!(out, b"x");
        assert!(!Selection::is_for(MessageType::Xml) && Selection::is_for(MessageType::Nvfix));
    }
}
