//! Tokens of the filter language.
//!
//! A slash starts a path where an operand is expected, and divides where an operator is expected.
//! Each token therefore depends on the one before it.

use crate::error::{FilterError, FilterErrorKind};
use crate::number::Number;
use crate::path::Path;

/// A token: an operand, a word or a symbol.
#[derive(Clone, Debug)]
pub(crate) enum Token<'a> {
    Path(Path),
    Number(Number),
    Text(Vec<u8>),
    Word(&'a str),
    Symbol(&'static str),
    End,
}

/// Operators and punctuation, longer symbols before their prefixes.
const SYMBOLS: [&str; 16] =
    ["<=", "<>", "<", ">=", ">", "==", "=", "!=", "+", "-", "*", "/", "%", "(", ")", ","];

/// Operators of other languages, each with a hint.
const FOREIGN_OPERATORS: [(&str, &str); 8] = [
    ("=>", "write `>=`"),
    ("=<", "write `<=`"),
    ("&&", "write AND"),
    ("||", "write OR"),
    ("!", "write NOT"),
    ("=~", "write LIKE"),
    ("\u{201C}", "write straight quotes: '...'"),
    ("\u{2018}", "write straight quotes: '...'"),
];

#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    wants_value: bool,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, wants_value: true }
    }

    /// The next token and its byte offset.
    pub(crate) fn next(&mut self) -> Result<(Token<'a>, usize), FilterError> {
        let rest = &self.text[self.at..];
        self.at = self.text.len() - rest.trim_ascii_start().len();
        let start = self.at;
        let token = self.token()?;
        self.wants_value = match &token {
            Token::Path(_) | Token::Number(_) | Token::Text(_) | Token::End => false,
            Token::Symbol(sign) => *sign != ")",
            // After a word operand a slash divides; after AND, OR or a function name it starts a
            // path.
            Token::Word(word) => !["TRUE", "FALSE", "NULL", "NAN"]
                .iter()
                .any(|value| word.eq_ignore_ascii_case(value)),
        };
        Ok((token, start))
    }

    fn token(&mut self) -> Result<Token<'a>, FilterError> {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else {
            return Ok(Token::End);
        };
        // A point has one byte, so the slice starts at a character.
        let is_fraction = first == '.' && rest[1..].starts_with(|next: char| next.is_ascii_digit());
        match first {
            '/' | '[' if self.wants_value => self.path(),
            '\'' | '"' => self.text(first),
            'r' | 'R' if rest[1..].starts_with(['\'', '"']) => self.raw_text(),
            _ if first.is_ascii_digit() || is_fraction => self.number(),
            _ if first.is_alphabetic() || first == '_' => Ok(self.word()),
            _ => self.sign(first),
        }
    }

    fn path(&mut self) -> Result<Token<'a>, FilterError> {
        let scanned = Path::scan(self.text, self.at);
        let (path, end) = scanned
            .map_err(|error| FilterError::new(error.at, FilterErrorKind::Path(error.what)))?;
        self.at = end;
        Ok(Token::Path(path))
    }

    fn word(&mut self) -> Token<'a> {
        let rest = &self.text[self.at..];
        let belongs = |character: char| character.is_alphanumeric() || character == '_';
        let end = rest.find(|character| !belongs(character)).unwrap_or(rest.len());
        self.at += end;
        Token::Word(&rest[..end])
    }

    fn sign(&mut self, first: char) -> Result<Token<'a>, FilterError> {
        let rest = &self.text[self.at..];
        let sign = SYMBOLS.into_iter().find(|sign| rest.starts_with(sign));
        // Operators of other languages get a hint instead of a bare error.
        let foreign = FOREIGN_OPERATORS.into_iter().find(|(sign, _)| rest.starts_with(sign));
        match (sign, foreign) {
            // `=` and `!` also start foreign operators such as `=~` and `!`; the longer match wins.
            (Some(sign), foreign) if foreign.is_none_or(|(other, _)| other.len() < sign.len()) => {
                self.at += sign.len();
                Ok(Token::Symbol(sign))
            }
            (_, Some((_, hint))) => {
                Err(self.error(FilterErrorKind::Unknown(first)).with_hint(hint))
            }
            _ => Err(self.error(FilterErrorKind::Unknown(first))),
        }
    }

    fn number(&mut self) -> Result<Token<'a>, FilterError> {
        let rest = &self.text[self.at..];
        let mut length = digits(rest);
        if rest[length..].starts_with('.') {
            length += 1 + digits(&rest[length + 1..]);
        }
        if rest[length..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[length + 1..].starts_with(['+', '-']));
            let exponent = digits(&rest[length + 1 + sign..]);
            // In `1e` the letter is no exponent: it stays and makes the number malformed.
            length += if exponent > 0 { 1 + sign + exponent } else { 0 };
        }
        // `12abc` is one malformed number, not a number and a word.
        let glued = |character: char| character.is_alphanumeric() || "_.".contains(character);
        let end = length + rest[length..].find(|next| !glued(next)).unwrap_or(rest.len() - length);
        match Number::parse(&rest.as_bytes()[..end]) {
            Some(number) if end == length && number.to_f64().is_finite() => {
                self.at += length;
                Ok(Token::Number(number))
            }
            _ => Err(self
                .error(FilterErrorKind::Number(rest[..end].to_owned()))
                .with_hint(format!("a text stands in quotes: '{}'", &rest[..end]))),
        }
    }

    // The `r` and the quote have one byte each.
    fn raw_text(&mut self) -> Result<Token<'a>, FilterError> {
        let start = self.at + 2;
        let quote = &self.text[self.at + 1..start];
        let Some(length) = self.text[start..].find(quote) else {
            return Err(self.error(FilterErrorKind::OpenText));
        };
        self.at = start + length + 1;
        Ok(Token::Text(self.text[start..start + length].into()))
    }

    fn text(&mut self, quote: char) -> Result<Token<'a>, FilterError> {
        let start = self.at;
        let mut text = Vec::new();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let Some(special) = rest.find([quote, '\\']) else {
                return Err(FilterError::new(start, FilterErrorKind::OpenText));
            };
            // Quote and backslash are ASCII, so slices start and end at characters.
            text.extend_from_slice(&rest.as_bytes()[..special]);
            self.at += special + 1;
            if rest[special..].starts_with(quote) {
                return Ok(Token::Text(text));
            }
            text.push(self.escape()?);
        }
    }

    /// Parses an escape after its backslash and returns the byte it stands for.
    fn escape(&mut self) -> Result<u8, FilterError> {
        let rest = &self.text[self.at..];
        let Some(letter) = rest.chars().next() else {
            return Err(FilterError::new(self.at - 1, FilterErrorKind::OpenText));
        };
        let (byte, length) = match letter {
            'a' => (Some(0x07), 1),
            'b' => (Some(0x08), 1),
            't' => (Some(b'\t'), 1),
            'n' => (Some(b'\n'), 1),
            'f' => (Some(0x0C), 1),
            'r' => (Some(b'\r'), 1),
            '\\' | '\'' | '"' => (u8::try_from(letter).ok(), 1),
            'x' => (rest.get(1..3).and_then(|code| byte(code, 16)), 3),
            '0'..='7' => (rest.get(..3).and_then(|code| byte(code, 8)), 3),
            _ => (None, 0),
        };
        let Some(byte) = byte else {
            let error = FilterError::new(self.at - 1, FilterErrorKind::Escape(letter));
            return Err(error.with_hint("a backslash is written `\\\\`, or in a raw text: r'\\d+'"));
        };
        self.at += length;
        Ok(byte)
    }

    fn error(&self, kind: FilterErrorKind) -> FilterError {
        FilterError::new(self.at, kind)
    }
}

/// A byte from exactly these digits; `from_str_radix` alone would accept a sign.
fn byte(code: &str, radix: u32) -> Option<u8> {
    // `from_str_radix` accepts a plus sign, which no escape has.
    let is_number = code.chars().all(|digit| digit.is_digit(radix));
    is_number.then(|| u8::from_str_radix(code, radix).ok())?
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}
