//! Framing of messages in a stream of bytes: one per line, or each after its length.

use std::io::{self, BufRead, ErrorKind, Read, Write};

/// The longest message, in bytes, and the remedy for a longer one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Longest {
    pub(crate) bytes: usize,
    pub(crate) remedy: &'static str,
}

/// One message a line, or each after its length (four bytes, little-endian).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frames {
    Lines,
    Lengths,
}

impl Frames {
    pub(crate) const fn new(binary: bool) -> Self {
        if binary { Self::Lengths } else { Self::Lines }
    }

    /// Reads the next message into `message`; false at the end of the input.
    pub(crate) fn read(
        self,
        input: &mut impl BufRead,
        longest: Longest,
        message: &mut Vec<u8>,
    ) -> io::Result<bool> {
        message.clear();
        match self {
            Self::Lines => read_line(input, longest, message),
            Self::Lengths => read_length_prefixed(input, longest, message),
        }
    }

    /// Writes a message.
    pub(crate) fn write(self, output: &mut impl Write, message: &[u8]) -> io::Result<()> {
        match self {
            Self::Lines => {
                output.write_all(message)?;
                output.write_all(b"\n")
            }
            Self::Lengths => {
                output.write_all(&(message.len() as u32).to_le_bytes())?;
                output.write_all(message)
            }
        }
    }
}

/// The error of a message beyond the limit; its number is told by the reader of the input.
fn too_long(longest: Longest) -> io::Error {
    let Longest { bytes, remedy } = longest;
    let text = format!("it is longer than {bytes} bytes: {remedy}");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// A line without its end; the last may lack one. Reads no more of an endless line than fits.
fn read_line(
    input: &mut impl BufRead,
    longest: Longest,
    message: &mut Vec<u8>,
) -> io::Result<bool> {
    let limit = longest.bytes as u64 + 1;
    if input.take(limit).read_until(b'\n', message)? == 0 {
        return Ok(false);
    }
    if message.last() == Some(&b'\n') {
        message.pop();
    }
    if message.len() > longest.bytes { Err(too_long(longest)) } else { Ok(true) }
}

fn read_length_prefixed(
    input: &mut impl BufRead,
    longest: Longest,
    message: &mut Vec<u8>,
) -> io::Result<bool> {
    if input.fill_buf()?.is_empty() {
        return Ok(false);
    }
    let mut length = [0; 4];
    input.read_exact(&mut length).map_err(cut_off)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > longest.bytes {
        return Err(too_long(longest));
    }
    message.resize(length, 0);
    input.read_exact(message).map_err(cut_off)?;
    Ok(true)
}

/// The error of an input that ends too early.
fn cut_off(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "the input ends in it"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EIGHT: Longest = Longest { bytes: 8, remedy: "send less" };

    fn all(frames: Frames, mut input: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let (mut messages, mut message) = (Vec::new(), Vec::new());
        while frames.read(&mut input, EIGHT, &mut message)? {
            messages.push(message.clone());
        }
        Ok(messages)
    }

    #[test]
    fn both_forms_read_back_what_was_written() {
        for frames in [Frames::Lines, Frames::Lengths] {
            let mut bytes = Vec::new();
            for message in [&b"a"[..], b"", b"12345678"] {
                frames.write(&mut bytes, message).unwrap();
            }
            let read = all(frames, &bytes).unwrap();
            assert_eq!(read, [b"a".to_vec(), vec![], b"12345678".to_vec()]);
        }
    }

    #[test]
    fn a_last_line_may_lack_its_end_and_nothing_may_be_too_long() {
        assert_eq!(all(Frames::Lines, b"a\nb").unwrap().len(), 2);
        assert!(all(Frames::Lines, b"123456789\n").is_err());
        assert!(all(Frames::Lengths, &[9, 0, 0, 0, 1]).is_err());
        assert!(all(Frames::Lengths, &[2, 0, 0, 0, 1]).is_err(), "cut short");
        assert!(all(Frames::Lengths, &[0xff; 4]).is_err());
    }
}
