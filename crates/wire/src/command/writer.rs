//! Writing headers: no spaces, one spelling, numbers without quotes.

use super::{Acks, Command, Field, Shape};
use std::fmt::Write;

/// A header that is being written. [`end`](Self::end) closes it.
#[derive(Debug)]
#[must_use = "a header needs its end"]
pub struct HeaderWriter<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> HeaderWriter<'a> {
    /// The header of a message.
    pub fn command(out: &'a mut Vec<u8>, command: Command) -> Self {
        Self::record(out).text(Field::Command, command.name())
    }

    /// The header of a record within a message.
    pub fn record(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    fn name(&mut self, field: Field) {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(field.written().as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    /// Adds a field.
    pub fn text(mut self, field: Field, value: &str) -> Self {
        self.name(field);
        if field.shape() == Shape::Text {
            self.out.push(b'"');
            escape(value, self.out);
            self.out.push(b'"');
        } else {
            self.out.extend_from_slice(value.as_bytes());
        }
        self
    }

    /// Adds a field, if there is something to say.
    pub fn text_if(self, field: Field, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(field, value),
            None => self,
        }
    }

    /// Adds a number; in quotes where the field is a text.
    pub fn number(mut self, field: Field, value: u64) -> Self {
        self.name(field);
        let quote: &[u8] = if field.shape() == Shape::Text { b"\"" } else { b"" };
        self.out.extend_from_slice(quote);
        push_number(value, self.out);
        self.out.extend_from_slice(quote);
        self
    }

    /// Adds a list of acknowledgements.
    pub fn acks(mut self, acks: Acks) -> Self {
        self.name(Field::AckType);
        let mut before = b'"';
        for ack in acks.iter() {
            self.out.push(before);
            self.out.extend_from_slice(ack.name().as_bytes());
            before = b',';
        }
        if acks == Acks::NONE {
            self.out.push(b'"');
        }
        self.out.push(b'"');
        self
    }

    /// Closes the header; a body may follow.
    pub fn end(self) {
        self.out.push(b'}');
    }
}

fn push_number(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn escape(text: &str, out: &mut Vec<u8>) {
    let needs = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    if !text.bytes().any(needs) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..b' ' => {
                let mut code = String::with_capacity(6);
                // Writing to memory cannot fail.
                let _written = write!(code, "\\u{byte:04x}");
                out.extend_from_slice(code.as_bytes());
            }
            _ => out.push(byte),
        }
    }
}
