//! Splits a whole message: FIX and NVFIX into fields, a JSON object into members.

use crate::malformed::{Malformed, MalformedReason};
use crate::message_type::{Format, MessageType};
use crate::reader::json::{Tokens, literal};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// Parts by distinct name, in order of first appearance.
#[derive(Debug)]
pub(crate) struct Members<'a, T> {
    /// Names with their parts.
    pub(crate) list: Vec<(Cow<'a, [u8]>, T)>,
    index: HashMap<Cow<'a, [u8]>, usize>,
}

/// Member of an object.
#[derive(Clone, Debug)]
pub(crate) struct Member<'a> {
    /// Name as written, with its quotes.
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
    /// Byte offset of the value in the message.
    pub(crate) at: usize,
}

impl<'a, T> Members<'a, T> {
    fn new() -> Self {
        Self { list: Vec::new(), index: HashMap::new() }
    }

    /// The part named `name`.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&T> {
        self.index.get(name).map(|index| &self.list[*index].1)
    }

    /// The part named `name`, inserted as `new` if absent.
    fn entry(&mut self, name: Cow<'a, [u8]>, new: T) -> &mut T {
        // The list keeps the message order; the map only finds positions.
        let index = *self.index.entry(name.clone()).or_insert(self.list.len());
        if index == self.list.len() {
            self.list.push((name, new));
        }
        &mut self.list[index].1
    }
}

/// The fields of a FIX or NVFIX message: all values by name.
pub(crate) fn fields(format: Format, bytes: &[u8]) -> Result<Members<'_, Vec<&[u8]>>, Malformed> {
    let (field, pair) = (format.field_separator(), format.pair_separator());
    // The last separator is optional.
    let body = bytes.strip_suffix(&[field]).unwrap_or(bytes);
    let mut parts = Members::new();
    if body.is_empty() {
        return if bytes.is_empty() {
            Ok(parts)
        } else {
            Err(Malformed::new(0, MalformedReason::NoValue))
        };
    }
    let mut start = 0;
    for text in body.split(|byte| *byte == field) {
        let middle = text.iter().position(|byte| *byte == pair);
        let middle = middle.ok_or(Malformed::new(start + text.len(), MalformedReason::NoValue))?;
        let name = &text[..middle];
        let odd = name.iter().position(|byte| !byte.is_ascii_digit());
        match odd {
            // An empty name has no odd byte, so its case comes first.
            _ if name.is_empty() => return Err(Malformed::new(start, MalformedReason::NoName)),
            Some(at) if format.message_type() == MessageType::Fix => {
                return Err(Malformed::new(start + at, MalformedReason::NotATag));
            }
            _ => {}
        }
        parts.entry(name.into(), Vec::new()).push(&text[middle + 1..]);
        start += text.len() + 1;
    }
    Ok(parts)
}

/// Whether `value`, trimmed, is an object.
pub(crate) fn is_object(value: &[u8]) -> bool {
    value.first() == Some(&b'{')
}

/// The members of the object `value`, which starts at byte `at` of its message. The first of equal
/// names counts.
pub(crate) fn members(value: &[u8], at: usize) -> Result<Members<'_, Member<'_>>, Malformed> {
    let cutter = MemberParser { bytes: value, tokens: Tokens::new(value), at };
    cutter.members().map_err(|error| Malformed::new(at + error.offset, error.reason))
}

/// Parser of one object.
struct MemberParser<'a> {
    bytes: &'a [u8],
    tokens: Tokens<'a>,
    at: usize,
}

impl<'a> MemberParser<'a> {
    fn members(mut self) -> Result<Members<'a, Member<'a>>, Malformed> {
        let mut parts = Members::new();
        // The opening brace is the first token of every object.
        self.tokens.token()?;
        loop {
            let before = self.tokens.last_end();
            let open = self.tokens.token()?;
            match self.bytes[open] {
                _ if self.tokens.skip_blanks(before) < open => {
                    return Err(self.tokens.unexpected(before));
                }
                b'"' => {}
                // A brace behind a comma is an error, so only an empty object may end here.
                b'}' if parts.list.is_empty() => break,
                _ => return Err(self.tokens.unexpected(open)),
            }
            let close = self.tokens.token()?;
            let colon = self.tokens.skip_blanks(close + 1);
            if self.bytes.get(colon) != Some(&b':') {
                return Err(self.tokens.unexpected(colon));
            }
            let (value, behind) = self.value(colon + 1)?;
            let name = self.name(open + 1, close)?;
            let (at, value) = (self.at + value.start, &self.bytes[value]);
            let member = Member { name: &self.bytes[open..=close], value, at };
            parts.entry(name, member);
            match self.bytes[behind] {
                b',' => {}
                b'}' => break,
                _ => return Err(self.tokens.unexpected(behind)),
            }
        }
        match self.tokens.skip_blanks(self.tokens.last_end()) {
            end if end < self.bytes.len() => Err(self.tokens.unexpected(end)),
            _ => Ok(parts),
        }
    }

    /// The range of the value after `start`, and the token after it.
    fn value(&mut self, start: usize) -> Result<(Range<usize>, usize), Malformed> {
        let start = self.tokens.skip_blanks(start);
        let first = self.tokens.token()?;
        let end = match self.bytes[first] {
            b'"' => self.tokens.token()? + 1,
            b'{' | b'[' => {
                self.tokens.skip()?;
                self.tokens.last_end()
            }
            _ => {
                let text = self.bytes[start..first].trim_ascii_end();
                literal::form(text).ok_or(Malformed::new(start, MalformedReason::NotALiteral))?;
                return Ok((start..start + text.len(), first));
            }
        };
        let behind = self.tokens.token()?;
        match self.tokens.skip_blanks(end) {
            at if at < behind => Err(self.tokens.unexpected(at)),
            _ if start < first => Err(self.tokens.unexpected(start)),
            _ => Ok((start..end, behind)),
        }
    }

    fn name(&self, start: usize, end: usize) -> Result<Cow<'a, [u8]>, Malformed> {
        let text = &self.bytes[start..end];
        // Most names have no escapes and need no copy.
        if !text.contains(&b'\\') {
            return Ok(text.into());
        }
        let mut name = Vec::new();
        literal::unescape(text, &mut name)
            .map_err(|at| Malformed::new(start + at, MalformedReason::NotAnEscape))?;
        Ok(name.into())
    }
}
