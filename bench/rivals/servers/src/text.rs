//! Common parts of line-based protocols.

use std::io::{self, ErrorKind};

/// The line that `bytes` begin with, if its end is there.
#[inline]
pub(crate) fn line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|byte| *byte == b'\r')?;
    bytes.get(end + 1).map(|_| &bytes[..end])
}

/// Writes a number.
#[inline]
pub(crate) fn number(value: usize, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let (mut at, mut rest) = (digits.len(), value);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Reads a number.
#[inline]
pub(crate) fn parsed(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0_usize, |value, digit| {
        digit.is_ascii_digit().then(|| value * 10 + usize::from(digit - b'0'))
    })
}

/// Error of an unexpected answer.
pub(crate) fn wrong(said: &[u8]) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("it said {}", String::from_utf8_lossy(said)))
}
