//! XML tokenizer: tags, attributes and text.

use crate::malformed::{Malformed, MalformedReason};
use std::ops::Range;

/// Position in an XML document.
#[derive(Clone, Debug)]
pub(crate) struct Markup<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A token outside of tags. Comments and processing instructions are skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// Start tag up to its name; attributes follow.
    Start(Range<usize>),
    /// End tag with its name.
    End(Range<usize>),
    /// Text that is not blank.
    Text(Range<usize>),
    /// CDATA text, which contains no references.
    Literal(Range<usize>),
    /// End of the document.
    Finish,
}

/// A token inside a start tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Name and value of an attribute.
    Attribute(Range<usize>, Range<usize>),
    /// End of a start tag.
    Open,
    /// End of an empty-element tag.
    Empty,
}

impl<'a> Markup<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        // UTF-8 byte order mark.
        let at = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        Self { bytes, at }
    }

    /// Current position.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Next token outside of tags.
    pub(crate) fn item(&mut self) -> Result<Item, Malformed> {
        loop {
            let start = self.at;
            while self.peek().is_some_and(|byte| byte != b'<') {
                self.at += 1;
            }
            // Blank text between tags carries no value, so no token is made of it.
            let text = self.trimmed(start..self.at);
            if !text.is_empty() {
                return Ok(Item::Text(text));
            }
            if self.at == self.bytes.len() {
                return Ok(Item::Finish);
            }
            match self.bytes.get(self.at + 1) {
                Some(b'/') => return self.end_tag(),
                // The search starts past `<?`, so that `<?>` does not close itself.
                Some(b'?') => self.skip_past(2, b"?>")?,
                Some(b'!') => {
                    if let Some(item) = self.bang()? {
                        return Ok(item);
                    }
                }
                // A document that ends behind `<` fails in `name`.
                _ => {
                    self.at += 1;
                    return Ok(Item::Start(self.name()?));
                }
            }
        }
    }

    /// Next token inside a start tag.
    pub(crate) fn part(&mut self) -> Result<Part, Malformed> {
        let before = self.at;
        self.skip_blanks();
        match self.peek() {
            Some(b'>') => {
                self.at += 1;
                return Ok(Part::Open);
            }
            Some(b'/') => {
                self.at += 1;
                self.expect(b'>')?;
                return Ok(Part::Empty);
            }
            // Attributes must be separated by blanks.
            _ if self.at == before => return Err(self.unexpected()),
            _ => {}
        }
        let name = self.name()?;
        self.skip_blanks();
        self.expect(b'=')?;
        self.skip_blanks();
        let quote = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => quote,
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        let start = self.at;
        loop {
            match self.peek() {
                Some(byte) if byte == quote => break,
                // XML forbids `<` in attribute values.
                Some(b'<') | None => return Err(self.unexpected()),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(Part::Attribute(name, start..self.at - 1))
    }

    fn end_tag(&mut self) -> Result<Item, Malformed> {
        self.at += 2;
        let name = self.name()?;
        self.skip_blanks();
        self.expect(b'>')?;
        Ok(Item::End(name))
    }

    /// Reads markup that starts with `<!`; `None` for a comment.
    fn bang(&mut self) -> Result<Option<Item>, Malformed> {
        let rest = &self.bytes[self.at..];
        if rest.starts_with(b"<!--") {
            // The search starts past the opening, so that `<!-->` does not close itself.
            self.skip_past(4, b"-->")?;
            return Ok(None);
        }
        if rest.starts_with(b"<![CDATA[") {
            let start = self.at + 9;
            self.skip_past(9, b"]]>")?;
            // The last three bytes are `]]>` and not text.
            return Ok(Some(Item::Literal(start..self.at - 3)));
        }
        let is_type = rest.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"<!DOCTYPE"));
        match is_type {
            true => Err(Malformed::new(self.at, MalformedReason::DocumentType)),
            // Other declarations occur only inside a document type.
            false => Err(Malformed::new(self.at + 1, MalformedReason::Unexpected)),
        }
    }

    /// Skips past the next `end` that is at least `length` bytes ahead.
    fn skip_past(&mut self, length: usize, end: &[u8]) -> Result<(), Malformed> {
        self.at += length;
        while let Some(rest) = self.bytes.get(self.at..).filter(|rest| rest.len() >= end.len()) {
            if rest.starts_with(end) {
                self.at += end.len();
                return Ok(());
            }
            self.at += 1;
        }
        Err(Malformed::new(self.bytes.len(), MalformedReason::Unfinished))
    }

    fn name(&mut self) -> Result<Range<usize>, Malformed> {
        let start = self.at;
        while let Some(byte) = self.peek() {
            match byte {
                // A colon does not end a name: the prefix belongs to it.
                b' ' | b'\n' | b'\r' | b'\t' | b'/' | b'>' | b'=' => break,
                b'<' | b'"' | b'\'' | b'&' => return Err(self.unexpected()),
                _ => self.at += 1,
            }
        }
        match self.bytes.get(start) {
            // XML names cannot start with these bytes.
            Some(b'0'..=b'9' | b'-' | b'.') => {
                Err(Malformed::new(start, MalformedReason::Unexpected))
            }
            _ if self.at == start => Err(self.unexpected()),
            _ => Ok(start..self.at),
        }
    }

    fn trimmed(&self, range: Range<usize>) -> Range<usize> {
        let text = self.bytes.get(range.clone()).unwrap_or_default();
        // Only the left side is cut here, so the rest still ends at `range.end`.
        let start = range.end - text.trim_ascii_start().len();
        start..start + text.trim_ascii().len()
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.peek() != Some(byte) {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[cold]
    fn unexpected(&self) -> Malformed {
        let is_end = self.at >= self.bytes.len();
        Malformed::new(
            self.at,
            if is_end { MalformedReason::Unfinished } else { MalformedReason::Unexpected },
        )
    }
}

/// Appends `text` with its references resolved to `out`. The error is the position of an unknown
/// reference.
///
/// Only the five predefined entities and numeric character references exist, so the text cannot
/// expand.
pub(crate) fn resolve(text: &[u8], out: &mut Vec<u8>) -> Result<(), usize> {
    let mut at = 0;
    while let Some(plain) = text[at..].iter().position(|byte| *byte == b'&') {
        out.extend_from_slice(&text[at..at + plain]);
        at += plain;
        // The longest reference, `&#x10FFFF;`, has ten bytes.
        let length = text[at..].iter().take(12).position(|byte| *byte == b';').ok_or(at)?;
        // `&` stands at `at` and `;` behind it, so the range is in order.
        let character = match &text[at + 1..at + length] {
            b"amp" => '&',
            b"lt" => '<',
            b"gt" => '>',
            b"quot" => '"',
            b"apos" => '\'',
            [b'#', b'x', digits @ ..] => number(digits, 16).ok_or(at)?,
            [b'#', digits @ ..] => number(digits, 10).ok_or(at)?,
            _ => return Err(at),
        };
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        at += length + 1;
    }
    out.extend_from_slice(&text[at..]);
    Ok(())
}

fn number(digits: &[u8], radix: u32) -> Option<char> {
    // `from_str_radix` accepts a plus sign, which XML does not.
    let digits = str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    // XML excludes the character 0.
    char::from_u32(u32::from_str_radix(digits, radix).ok()?).filter(|character| *character != '\0')
}
