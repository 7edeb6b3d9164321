//! Reading headers: tolerant of spaces, of both spellings of a name, and of numbers in quotes.

use super::{Acks, Command, Field};
use smallvec::SmallVec;
use std::borrow::Cow;

/// The longest header, in bytes.
pub const HEADER_MAX: usize = 256 << 10;
/// Deepest nesting of values of unknown fields.
const DEPTH_MAX: usize = 32;

/// Errors of a header; positions are bytes from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Missing opening brace.
    #[error("at byte {at}: a header begins with `{{`")]
    NoHeader {
        /// The position.
        at: usize,
    },
    /// Missing end.
    #[error("the header has no end: its closing brace is missing")]
    NoEnd,
    /// Something else should be there.
    #[error("at byte {at}: {expected} should be here")]
    Expected {
        /// The position.
        at: usize,
        /// The expected syntax.
        expected: &'static str,
    },
    /// Invalid UTF-8.
    #[error("at byte {at}: this is no UTF-8")]
    NoText {
        /// The position.
        at: usize,
    },
    /// A field comes twice, perhaps spelled in two ways.
    #[error("{field} is there twice", field = field.long())]
    Twice {
        /// Which.
        field: Field,
    },
    /// A field that is needed is not there.
    #[error("{field} is missing", field = field.long())]
    Missing {
        /// Which.
        field: Field,
    },
    /// A field's value cannot be what it says.
    #[error("{field} has a value that makes no sense", field = field.long())]
    Value {
        /// Which.
        field: Field,
    },
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    end: u32,
}

/// A field that is there.
#[derive(Clone, Copy, Debug)]
struct Entry {
    field: Field,
    has_escapes: bool,
    value: Span,
}

/// Fields of a header without allocation.
const COMMON: usize = 8;

/// A header, and the body behind it.
#[derive(Clone, Debug)]
pub struct Header<'a> {
    text: &'a str,
    body: &'a [u8],
    /// Few, so that looking for one costs less than a place for each would.
    entries: SmallVec<[Entry; COMMON]>,
    /// The fields that are there: a bit for each.
    present: u64,
}

const _: () = assert!(Field::ALL.len() <= 64, "a bit for each");

impl<'a> Header<'a> {
    /// Reads the header at the beginning of a frame's payload; the rest is the body.
    ///
    /// # Errors
    /// See [`HeaderError`].
    pub fn parse(payload: &'a [u8]) -> Result<Self, HeaderError> {
        let bytes = &payload[..payload.len().min(HEADER_MAX)];
        let mut scan = Scan { bytes, at: 0 };
        let mut header = Self { text: "", body: &[], entries: SmallVec::new(), present: 0 };
        scan.skip_space();
        if scan.take(b'{').is_none() {
            return Err(HeaderError::NoHeader { at: scan.at });
        }
        scan.skip_space();
        if scan.take(b'}').is_none() {
            loop {
                header.field(&mut scan)?;
                if scan.take(b',').is_none() {
                    scan.expect(b'}', "`,` or `}`")?;
                    break;
                }
            }
        }
        let (text, body) = payload.split_at(scan.at);
        header.text = std::str::from_utf8(text)
            .map_err(|error| HeaderError::NoText { at: error.valid_up_to() })?;
        header.body = body;
        Ok(header)
    }

    fn field(&mut self, scan: &mut Scan<'_>) -> Result<(), HeaderError> {
        scan.skip_space();
        scan.expect(b'"', "a name in quotes")?;
        let (name, _) = scan.quoted()?;
        scan.skip_space();
        scan.expect(b':', "`:`")?;
        scan.skip_space();
        let (value, has_escapes) = scan.value()?;
        scan.skip_space();
        let Some(field) = Field::named(&scan.bytes[name.start as usize..name.end as usize]) else {
            return Ok(());
        };
        let Some(value) = value else { return Err(HeaderError::Value { field }) };
        let bit = 1 << field as u8;
        if self.present & bit != 0 {
            return Err(HeaderError::Twice { field });
        }
        self.present |= bit;
        self.entries.push(Entry { field, has_escapes, value });
        Ok(())
    }

    /// Whether it has these fields, and no others that are known.
    pub fn has_just(&self, fields: &[Field]) -> bool {
        self.present == fields.iter().fold(0, |bits, field| bits | 1 << *field as u8)
    }

    /// The encoded header.
    pub const fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// Length of the encoded header.
    #[allow(clippy::len_without_is_empty, reason = "none is empty")]
    pub const fn len(&self) -> usize {
        self.text.len()
    }

    /// The body after the header.
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }

    /// The field's text; `None` if it is not there.
    #[inline]
    pub fn text(&self, field: Field) -> Option<Cow<'a, str>> {
        let entry = self.entry(field)?;
        let raw = self.raw_of(entry);
        Some(if entry.has_escapes { Cow::Owned(unescaped(raw)) } else { Cow::Borrowed(raw) })
    }

    #[inline]
    fn raw(&self, field: Field) -> Option<&'a str> {
        Some(self.raw_of(self.entry(field)?))
    }

    #[inline]
    fn entry(&self, field: Field) -> Option<&Entry> {
        if self.present & 1 << field as u8 == 0 {
            return None;
        }
        self.entries.iter().find(|entry| entry.field == field)
    }

    #[inline]
    fn raw_of(&self, entry: &Entry) -> &'a str {
        &self.text[entry.value.start as usize..entry.value.end as usize]
    }

    /// The field's number.
    ///
    /// # Errors
    /// If it is there and is none.
    #[inline]
    pub fn number(&self, field: Field) -> Result<Option<u64>, HeaderError> {
        let Some(raw) = self.raw(field) else { return Ok(None) };
        let is_plain = raw.bytes().all(|byte| byte.is_ascii_digit());
        let number = if is_plain { raw.parse().ok() } else { None };
        number.map(Some).ok_or(HeaderError::Value { field })
    }

    /// The field's truth; false if it is not there.
    ///
    /// # Errors
    /// If it is there and is none.
    pub fn flag(&self, field: Field) -> Result<bool, HeaderError> {
        match self.raw(field) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(_) => Err(HeaderError::Value { field }),
        }
    }

    /// The command.
    ///
    /// # Errors
    /// If it says nothing, or nothing that is known.
    #[inline]
    pub fn command(&self) -> Result<Command, HeaderError> {
        let field = Field::Command;
        let name = self.raw(field).ok_or(HeaderError::Missing { field })?;
        Command::named(name).ok_or(HeaderError::Value { field })
    }

    /// The acknowledgements that are wanted.
    ///
    /// # Errors
    /// If the list names something else.
    #[inline]
    pub fn acks(&self) -> Result<Acks, HeaderError> {
        let field = Field::AckType;
        let Some(list) = self.raw(field) else { return Ok(Acks::NONE) };
        Acks::parse(list).map_err(|_| HeaderError::Value { field })
    }
}

/// A place in the bytes.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it.then_some(())
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), HeaderError> {
        match self.take(byte) {
            Some(()) => Ok(()),
            None if self.peek().is_none() => Err(HeaderError::NoEnd),
            None => Err(HeaderError::Expected { at: self.at, expected }),
        }
    }

    /// Reads the rest of a quoted text; returns it and whether it has escapes.
    fn quoted(&mut self) -> Result<(Span, bool), HeaderError> {
        let start = self.at;
        let mut has_escapes = false;
        loop {
            match self.peek().ok_or(HeaderError::NoEnd)? {
                b'"' => break,
                b'\\' => {
                    has_escapes = true;
                    self.escape()?;
                }
                byte if byte < b' ' => {
                    let expected = "a control character, escaped,";
                    return Err(HeaderError::Expected { at: self.at, expected });
                }
                _ => self.at += 1,
            }
        }
        let span = Span { start: start as u32, end: self.at as u32 };
        self.at += 1;
        Ok((span, has_escapes))
    }

    fn escape(&mut self) -> Result<(), HeaderError> {
        let at = self.at;
        let wrong = HeaderError::Expected { at, expected: "an escape such as `\\n` or `\\u0041`" };
        let kind = self.bytes.get(at + 1).ok_or(HeaderError::NoEnd)?;
        self.at += match kind {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' => {
                let digits = self.bytes.get(at + 2..at + 6).ok_or(HeaderError::NoEnd)?;
                let is_number = digits.iter().all(u8::is_ascii_hexdigit);
                if is_number { 6 } else { return Err(wrong) }
            }
            _ => return Err(wrong),
        };
        Ok(())
    }

    /// A text without its quotes, or a bare word; nothing of an object or a list.
    fn value(&mut self) -> Result<(Option<Span>, bool), HeaderError> {
        match self.peek().ok_or(HeaderError::NoEnd)? {
            b'"' => {
                self.at += 1;
                let (span, has_escapes) = self.quoted()?;
                Ok((Some(span), has_escapes))
            }
            b'{' | b'[' => {
                self.skip_nested()?;
                Ok((None, false))
            }
            _ => {
                let start = self.at;
                let is_word = |byte: u8| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+' | b'_')
                };
                while self.peek().is_some_and(is_word) {
                    self.at += 1;
                }
                if self.at == start {
                    return Err(HeaderError::Expected { at: start, expected: "a value" });
                }
                Ok((Some(Span { start: start as u32, end: self.at as u32 }), false))
            }
        }
    }

    fn skip_nested(&mut self) -> Result<(), HeaderError> {
        let mut depth = 0;
        loop {
            let byte = self.peek().ok_or(HeaderError::NoEnd)?;
            let at = self.at;
            self.at += 1;
            match byte {
                b'{' | b'[' if depth == DEPTH_MAX => {
                    return Err(HeaderError::Expected { at, expected: "a value less deep" });
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth == 1 => return Ok(()),
                b'}' | b']' => depth -= 1,
                b'"' => drop(self.quoted()?),
                _ => {}
            }
        }
    }
}

/// The text that checked escapes stand for; half a pair of surrogates stands for U+FFFD.
fn unescaped(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut units: Vec<u16> = Vec::new();
    let mut rest = raw;
    while let Some((plain, escape)) = rest.split_once('\\') {
        if !plain.is_empty() {
            flush(&mut units, &mut text);
            text.push_str(plain);
        }
        let (kind, after) = escape.split_at(1);
        rest = after;
        if kind == "u" {
            let (digits, after) = after.split_at(4);
            units.push(u16::from_str_radix(digits, 16).unwrap_or_default());
            rest = after;
            continue;
        }
        flush(&mut units, &mut text);
        text.push_str(match kind {
            "b" => "\u{8}",
            "f" => "\u{c}",
            "n" => "\n",
            "r" => "\r",
            "t" => "\t",
            itself => itself,
        });
    }
    flush(&mut units, &mut text);
    text.push_str(rest);
    text
}

fn flush(units: &mut Vec<u16>, text: &mut String) {
    let decoded = char::decode_utf16(units.drain(..));
    text.extend(decoded.map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)));
}
