//! Parsing and formatting of decimal numbers.

use super::{DIGITS_MAX, Decimal, Units};
use num_bigint::BigInt;
use num_traits::Pow;
use std::fmt::{self, Display, Formatter};

/// Most characters on the fast path: 18 digits always fit into 64 bits.
const WORD_DIGITS: usize = 18;

impl Decimal {
    /// Parses all of `text`, like the filter language. `None` if it is no number or has too many
    /// digits.
    #[inline]
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        match Self::parse_small(text) {
            Some((units, scale)) => Some(Self::of_small(units, scale)),
            None => parse_any(text),
        }
    }

    /// Fast path for short texts without exponent; returns (units, scale).
    #[inline]
    pub(crate) fn parse_small(text: &[u8]) -> Option<(i64, u32)> {
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

    /// The shortest decimal number that parses as `number`; `None` for infinities and NaN.
    pub(crate) fn of_float(number: f64) -> Option<Self> {
        if number.is_finite() { Self::parse(format!("{number:e}").as_bytes()) } else { None }
    }

    /// Appends the number without trailing zeros.
    pub(crate) fn write(&self, text: &mut Vec<u8>) {
        let mut scale = self.scale as usize;
        match &self.units {
            Units::Small(units) => {
                let mut buffer = [0; 40];
                let digits = digits_of(units.unsigned_abs(), &mut buffer);
                place(*units < 0, digits, &mut scale, text);
            }
            Units::Wide(units) => {
                let digits = units.magnitude().to_string();
                place(self.is_negative(), digits.as_bytes(), &mut scale, text);
            }
        }
    }
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

/// Slow path of [`Decimal::parse`].
#[cold]
fn parse_any(text: &[u8]) -> Option<Decimal> {
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
        return Some(Decimal::ZERO);
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
    Some(Decimal::fitted(units, u32::try_from(scale).unwrap_or(0)))
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

fn digits_of(number: u128, buffer: &mut [u8; 40]) -> &[u8] {
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
fn place(is_negative: bool, digits: &[u8], scale: &mut usize, text: &mut Vec<u8>) {
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

impl Display for Decimal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write(&mut text);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_filter::number::Number;
    use proptest::prelude::*;

    fn shown(text: &str) -> Option<String> {
        Decimal::parse(text.as_bytes()).map(|number| number.to_string())
    }

    #[test]
    fn numbers_are_written_without_needless_zeros() {
        for (text, number) in [
            ("0", "0"),
            ("-0.00", "0"),
            ("34.50", "34.5"),
            ("+5000", "5000"),
            ("-.5", "-0.5"),
            ("5.", "5"),
            ("007", "7"),
            ("0.000100", "0.0001"),
            ("1e3", "1000"),
            ("1.25E-3", "0.00125"),
            ("120e-1", "12"),
            ("0e99999999999", "0"),
            ("123456789012345678901234567890.10", "123456789012345678901234567890.1"),
            (
                "123456789012345678901234567890123456789012345678901",
                "123456789012345678901234567890123456789012345678901",
            ),
        ] {
            assert_eq!(shown(text).as_deref(), Some(number), "{text}");
        }
        for text in
            ["", "-", ".", "-.", "1.2.3", "12a", " 1", "e5", "1e", "1e+", "nan", "+-1", "1e401"]
        {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    #[test]
    fn any_float_has_a_decimal() {
        for number in [0.1, -1.5e-300, f64::MAX, 5e-324, 12_345.678] {
            let decimal = Decimal::of_float(number).expect("a number");
            assert_eq!(decimal.to_string().parse(), Ok(number));
        }
        assert!(Decimal::of_float(f64::NAN).is_none());
    }

    proptest! {
        #[test]
        fn the_same_texts_are_numbers_as_in_filters(
            text in "[+-]?[0-9]{0,20}\\.?[0-9]{0,4}([eE][+-]?[0-9]{0,2})?",
        ) {
            let number = Number::parse(text.as_bytes()).filter(|number| !number.is_nan());
            let decimal = Decimal::parse(text.as_bytes());
            prop_assert_eq!(decimal.is_some(), number.is_some());
            if let (Some(decimal), Some(number)) = (decimal, number) {
                let read: f64 = decimal.to_string().parse().expect("a number");
                prop_assert_eq!(read, number.to_f64());
            }
        }

        #[test]
        fn what_is_written_is_read_as_the_same_number(units: i128, scale in 0..45_u32) {
            let number = Decimal::small(units, scale);
            let read = Decimal::parse(number.to_string().as_bytes()).expect("a number");
            prop_assert!(read.order(&number).is_eq());
        }
    }
}
