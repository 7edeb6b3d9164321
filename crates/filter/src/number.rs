//! Numbers of messages and filters, compared exactly.

use std::cmp::Ordering;
use std::fmt::{self, Display, Formatter};

/// An integer if possible, else a float.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// An integer.
    Int(i64),
    /// An integer above `i64::MAX`.
    Uint(u64),
    /// Any other number, including NaN.
    Float(f64),
}

/// Decimal digits that any `f64` represents exactly.
const EXACT_DIGITS: usize = 15;
/// Powers of ten that are exact in an `f64`, as many as `EXACT_DIGITS` needs.
const POWERS: [f64; EXACT_DIGITS + 1] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Length of texts that are parsed as one word.
const SHORT: usize = 8;

impl Number {
    /// Parses all of `text`: decimal with optional sign, fraction and exponent, or `NaN` in any
    /// case.
    #[inline]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (is_negative, digits) = match text {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] => (false, digits),
            digits => (false, digits),
        };
        // Most numbers have up to 8 digits, which are parsed in one word without a loop.
        if (1..=SHORT).contains(&digits.len()) {
            return match Self::parse_short(digits) {
                Some(number) if is_negative => Some(number.negated()),
                Some(number) => Some(number),
                None => parse_any(text, digits),
            };
        }
        if digits.is_empty() || digits.len() > EXACT_DIGITS {
            // Beyond 15 digits an f64 division would round twice.
            return parse_any(text, digits);
        }
        // 15 digits fit an i64, so no overflow is possible.
        let (mut whole, mut point) = (0_i64, None);
        for (at, &byte) in digits.iter().enumerate() {
            match byte {
                b'0'..=b'9' => whole = whole * 10 + i64::from(byte - b'0'),
                b'.' if point.is_none() => point = Some(at),
                _ => return parse_any(text, digits),
            }
        }
        let number = match point {
            None => Self::Int(whole),
            // One of the bytes is the point itself, hence the 1.
            Some(point) => decimal(whole, digits.len() - 1 - point),
        };
        Some(if is_negative { number.negated() } else { number })
    }

    /// Parses up to eight digits with at most one point as one word (SWAR), without branches on
    /// their count.
    #[inline(always)]
    fn parse_short(digits: &[u8]) -> Option<Self> {
        const LOW: u64 = u64::from_le_bytes([1; SHORT]);
        let word = short_word(digits);
        // Bytes equal to the point become zero, which the next step detects.
        let points = word ^ (u64::from(b'.') * LOW);
        // The borrow can set bits above the first match; the lowest one is always right.
        let points = points.wrapping_sub(LOW) & !points & (0x80 * LOW);
        if points == 0 {
            // Without a point all bytes must be digits, and the number is an integer.
            return Some(Self::Int(whole(word, digits.len())?));
        }
        let point = points.trailing_zeros() / 8;
        // Closes the gap: digits after the point move down by one byte.
        let before = (1 << (8 * point)) - 1;
        let word = word & before | word >> 8 & !before;
        let whole = whole(word, digits.len() - 1)?;
        Some(decimal(whole, digits.len() - 1 - point as usize))
    }

    /// The number with the other sign. `self` is not `i64::MIN`, which no digits alone spell.
    #[inline]
    pub(crate) fn negated(self) -> Self {
        const BEYOND_INT: u64 = i64::MAX as u64 + 1;
        match self {
            Self::Int(number) => Self::Int(-number),
            Self::Float(number) => Self::Float(-number),
            // One `Uint` has a negative counterpart among the i64.
            Self::Uint(BEYOND_INT) => Self::Int(i64::MIN),
            Self::Uint(number) => Self::Float(-(number as f64)),
        }
    }

    /// The nearest `f64`.
    #[inline]
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Int(number) => number as f64,
            Self::Uint(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    /// Whether the number is NaN.
    #[inline]
    pub fn is_nan(self) -> bool {
        matches!(self, Self::Float(number) if number.is_nan())
    }

    /// The number as an integer, if it is integral and its magnitude is below 2^64.
    #[inline]
    pub fn whole(self) -> Option<i128> {
        match self {
            Self::Int(number) => Some(number.into()),
            Self::Uint(number) => Some(number.into()),
            Self::Float(number) => {
                // Fractions of infinity and NaN are NaN, so neither is whole.
                let fits = number.fract() == 0.0 && number.abs() < TWO_TO_64;
                fits.then_some(number as i128)
            }
        }
    }

    /// Exact order of two numbers; `None` if one is NaN.
    #[inline]
    pub fn order(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(left), Self::Int(right)) => Some(left.cmp(&right)),
            (Self::Float(left), Self::Float(right)) => left.partial_cmp(&right),
            (Self::Float(left), whole) => order_whole(whole, left).map(Ordering::reverse),
            (whole, Self::Float(right)) => order_whole(whole, right),
            // Both are integers here, and i128 holds all of either type.
            (left, right) => Some(left.whole().cmp(&right.whole())),
        }
    }
}

/// Both operands are exact, so the quotient is rounded once and correctly.
#[inline(always)]
fn decimal(whole: i64, decimals: usize) -> Number {
    // Both operands are exact up to 15 digits, so only the division rounds.
    Number::Float(whole as f64 / POWERS[decimals])
}

/// One to eight bytes as a word, little endian.
#[inline(always)]
fn short_word(bytes: &[u8]) -> u64 {
    // Lengths known to the compiler become one load each.
    let length = bytes.len();
    if let Some(word) = bytes.first_chunk() {
        return u64::from_le_bytes(*word);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        // Overlapping halves repeat the same bytes, so OR-ing them changes nothing.
        let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
        return first | last << (8 * (length - 4));
    }
    // First, middle and last byte cover lengths 1 to 3, repeated bytes included.
    [0, length / 2, length - 1].iter().fold(0, |word, at| word | u64::from(bytes[*at]) << (8 * at))
}

/// The value of the lowest `length` bytes of `word`, if all are digits and there is one at least.
#[inline(always)]
fn whole(word: u64, length: usize) -> Option<i64> {
    const LOW: u64 = u64::from_le_bytes([1; SHORT]);
    if length == 0 {
        return None;
    }
    // Shifted to the top, so that the missing leading digits read as zeros.
    let digits = (word ^ (u64::from(b'0') * LOW)) << (64 - 8 * length);
    // Adding 0x76 sets the top bit of every byte above 9.
    if (digits.wrapping_add(0x76 * LOW) | digits) & (0x80 * LOW) != 0 {
        return None;
    }
    // Adds neighbours in parallel: eight digits to four pairs, two fours, one number.
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some(((fours * 10_000 + (fours >> 32)) & 0xffff_ffff) as i64)
}

const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

fn order_whole(whole: Number, float: f64) -> Option<Ordering> {
    // Beyond the range of all integers the sign of the float decides.
    if float.abs() >= TWO_TO_64 || float.is_nan() {
        return 0.0.partial_cmp(&float);
    }
    let below = float.floor();
    // The floor is exact and fits an i128.
    let order = whole.whole().cmp(&Some(below as i128));
    // An integer equal to the floor is still less than a float with a fraction.
    Some(order.then(below.total_cmp(&float)))
}

/// Parses long and unusual texts.
#[cold]
fn parse_any(text: &[u8], digits: &[u8]) -> Option<Number> {
    let text = str::from_utf8(text).ok()?;
    // The standard parser also takes `inf` and `infinity`, which are texts here.
    match digits.first()? {
        b'0'..=b'9' | b'.' => {}
        b'n' | b'N' if digits.eq_ignore_ascii_case(b"nan") => return Some(Number::Float(f64::NAN)),
        _ => return None,
    }
    // Integers come first, because a float rounds those beyond 53 bits.
    if let Ok(number) = text.parse() {
        return Some(Number::Int(number));
    }
    if let Ok(number) = text.parse() {
        return Some(Number::Uint(number));
    }
    text.parse().ok().map(Number::Float)
}

impl From<u64> for Number {
    #[inline]
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or(Self::Uint(number), Self::Int)
    }
}

/// Writes the shortest text that parses to the same number.
impl Display for Number {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::Uint(number) => number.fmt(f),
            Self::Float(number) => number.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Number;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn shown(text: &str) -> Option<String> {
        Number::parse(text.as_bytes()).map(|number| format!("{number:?}"))
    }

    #[test]
    fn numbers_are_whole_as_long_as_they_can_be() {
        for (text, number) in [
            ("0", "Int(0)"),
            ("-17", "Int(-17)"),
            ("+5000", "Int(5000)"),
            ("007", "Int(7)"),
            ("9223372036854775807", "Int(9223372036854775807)"),
            ("-9223372036854775808", "Int(-9223372036854775808)"),
            ("9223372036854775808", "Uint(9223372036854775808)"),
            ("18446744073709551616", "Float(1.8446744073709552e19)"),
            ("34.50", "Float(34.5)"),
            ("-.5", "Float(-0.5)"),
            ("5.", "Float(5.0)"),
            ("1e3", "Float(1000.0)"),
            ("2.5E-2", "Float(0.025)"),
            ("nan", "Float(NaN)"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(number), "{text}");
        }
        for text in ["", "-", "+", ".", "-.", "1.2.3", "12a", " 1", "1 ", "e5", "inf", "+-1", "0x1"]
        {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    #[test]
    fn great_numbers_are_compared_without_rounding() {
        let order = |left: &str, right: &str| {
            let read = |text: &str| Number::parse(text.as_bytes()).expect("a number");
            read(left).order(read(right))
        };
        assert_eq!(order("9007199254740993", "9007199254740992.0"), Some(Ordering::Greater));
        assert_eq!(order("9007199254740992.0", "9007199254740993"), Some(Ordering::Less));
        assert_eq!(order("18446744073709551615", "18446744073709551616"), Some(Ordering::Less));
        assert_eq!(order("-1", "18446744073709551615"), Some(Ordering::Less));
        assert_eq!(order("-1", "-1.5"), Some(Ordering::Greater));
        assert_eq!(order("-1e30", "0"), Some(Ordering::Less));
        assert_eq!(order("5", "5.0"), Some(Ordering::Equal));
        assert_eq!(order("5", "nan"), None);
    }

    proptest! {
        #[test]
        fn short_decimals_are_read_as_the_standard_library_reads_them(
            text in "[+-]?[0-9]{1,9}\\.[0-9]{0,6}",
        ) {
            let number = Number::parse(text.as_bytes()).expect("a number").to_f64();
            prop_assert_eq!(Some(number), text.parse().ok());
        }

        #[test]
        fn short_texts_are_numbers_if_they_are_digits_and_a_point(
            text in "[+-]?([0-9]{0,9}\\.?[0-9]{0,9}|[0-9.]{1,9}|[0-9./:a\u{80}]{1,5})",
        ) {
            let digits = text.trim_start_matches(['+', '-']);
            let others = digits.replace(|letter: char| letter.is_ascii_digit(), "");
            let is_number = others.len() < digits.len() && ["", "."].contains(&&*others);
            let number = Number::parse(text.as_bytes());
            prop_assert_eq!(number.is_some(), is_number);
            if let Some(number) = number {
                prop_assert_eq!(matches!(number, Number::Float(_)), others == ".");
                prop_assert_eq!(Some(number.to_f64()), text.parse().ok());
            }
        }

        #[test]
        fn any_number_is_compared_as_its_exact_value(left: i64, right: i64, bits: u64) {
            let float = f64::from_bits(bits);
            let (left, right) = (Number::Int(left), Number::Int(right));
            prop_assert_eq!(left.order(right), Some(left.whole().cmp(&right.whole())));
            let order = left.order(Number::Float(float));
            prop_assert_eq!(Number::Float(float).order(left), order.map(Ordering::reverse));
            if left.to_f64() != float {
                prop_assert_eq!(order, left.to_f64().partial_cmp(&float));
            }
        }
    }
}
