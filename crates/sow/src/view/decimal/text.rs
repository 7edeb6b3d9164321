//! Parsing and formatting of decimal numbers.

use num_bigint::BigInt;
use num_traits::Pow;

/// Most digits on either side of the decimal point in a parsed number: more than any `f64` has.
pub(super) const DIGITS_MAX: u32 = 400;

/// Most characters on the fast path: 18 digits always fit into 64 bits.
const WORD_DIGITS: usize = 18;

/// Fast path for short texts without exponent; returns (units, scale).
#[inline]
pub(super) fn parse_small(text: &[u8]) -> Option<(i64, u32)> {
    let (is_negative, digits) = signed(text);
    if digits.is_empty() || digits.len() > WORD_DIGITS {
        return None;
    }
    let (mut units, mut point) = (0_i64, None);
    for (at, &byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => units = units * 10 + i64::from(byte - b'0'),
            b'.' if point.is_none() && digits.len() > 1 => point = Some(at),
            _ => return None,
        }
    }
    let scale = point.map_or(0, |point| digits.len() - 1 - point);
    Some((if is_negative { -units } else { units }, scale as u32))
}

/// Sign and digits of `text`.
#[inline]
fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    }
}

/// Slow path, for any number; returns (units, scale).
#[cold]
pub(super) fn parse_any(text: &[u8]) -> Option<(BigInt, u32)> {
    let (is_negative, text) = signed(text);
    let at = text.iter().position(|byte| matches!(byte, b'e' | b'E'));
    let (mantissa, exponent) = match at {
        Some(at) => (&text[..at], exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let point = mantissa.iter().position(|byte| *byte == b'.').unwrap_or(mantissa.len());
    let (before, behind) = mantissa.split_at(point);
    let behind = behind.strip_prefix(b".").unwrap_or_default();
    let digits = [before, behind].concat();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let leading = digits.iter().take_while(|digit| **digit == b'0').count();
    let trailing = digits[leading..].iter().rev().take_while(|digit| **digit == b'0').count();
    let counting = &digits[leading..digits.len() - trailing];
    if counting.is_empty() {
        return Some((BigInt::ZERO, 0));
    }
    // Scale of the last significant digit.
    let scale = behind.len() as i64 - trailing as i64 - exponent;
    let most = i64::from(DIGITS_MAX);
    if scale > most || counting.len() as i64 - scale > most {
        return None;
    }
    let units = BigInt::parse_bytes(counting, 10)?;
    let units = if is_negative { -units } else { units };
    let tens = u32::try_from(-scale).unwrap_or(0);
    let units = units * Pow::pow(BigInt::from(10), tens);
    Some((units, u32::try_from(scale).unwrap_or(0)))
}

fn exponent(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"+").or(text.strip_prefix(b"-")).unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Clamped: larger exponents are out of range anyway, unless all digits are zero.
    let number = digits.iter().fold(0_i64, |number, digit| {
        (number * 10 + i64::from(digit - b'0')).min(i64::from(u32::MAX))
    });
    Some(if text[0] == b'-' { -number } else { number })
}

/// Decimal digits of `number`.
pub(super) fn digits_of(number: u128, buffer: &mut [u8; 40]) -> &[u8] {
    let mut at = buffer.len();
    let mut rest = number;
    // 64-bit divisions are much faster.
    while rest > u128::from(u64::MAX) {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let mut rest = rest as u64;
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &buffer[at..];
        }
    }
}

/// Appends `digits` with a decimal point before the last `scale` of them.
pub(super) fn place(is_negative: bool, digits: &[u8], scale: &mut usize, text: &mut Vec<u8>) {
    let zeros = digits.iter().rev().take(*scale).take_while(|digit| **digit == b'0').count();
    let digits = &digits[..digits.len() - zeros];
    *scale -= zeros;
    if digits.is_empty() || digits == b"0" {
        return text.push(b'0');
    }
    if is_negative {
        text.push(b'-');
    }
    let before = digits.len().saturating_sub(*scale);
    text.extend_from_slice(if before == 0 { b"0" } else { &digits[..before] });
    if *scale > 0 {
        text.push(b'.');
        text.extend(std::iter::repeat_n(b'0', *scale - (digits.len() - before)));
        text.extend_from_slice(&digits[before..]);
    }
}
