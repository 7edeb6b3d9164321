//! Exact decimal numbers, for sums.
//!
//! A number is an integer divided by a power of ten. Integers of up to 38 digits, nearly all, are
//! machine words; larger ones are big integers. Only [`quotient`](Decimal::quotient) rounds, so a
//! value that was added can be subtracted without a trace.

#[cfg(test)]
mod tests;
mod text;

use num_bigint::BigInt;
use num_traits::{One, Pow, Signed, ToPrimitive, Zero};
use std::cmp::Ordering;
use std::fmt::{self, Display, Formatter};
use text::{DIGITS_MAX, digits_of, parse_any, place};

/// An exact decimal number.
#[derive(Clone, Debug)]
pub(crate) struct Decimal {
    units: Units,
    /// Digits behind the decimal point.
    scale: u32,
}

#[derive(Clone, Debug)]
enum Units {
    Small(i128),
    Wide(Box<BigInt>),
}

/// Limits of a product: digits behind the decimal point, and bits. Expressions multiply a few
/// numbers; products of thousands are refused.
const SCALE_MAX: u32 = 8 * DIGITS_MAX;
const BITS_MAX: u64 = 4 * SCALE_MAX as u64;

/// Rounding of quotients: to `decimals` places or `digits` significant digits, whichever is finer.
/// Halves round away from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounding {
    /// Digits behind the decimal point.
    pub decimals: u32,
    /// Significant digits.
    pub digits: u32,
}

impl Rounding {
    /// Default of views: 5 decimals, or 7 significant digits where that is finer.
    pub const DEFAULT: Self = Self { decimals: 5, digits: 7 };
    /// Rounding of quotients that are summed.
    pub(crate) const FINE: Self = Self { decimals: 20, digits: 20 };
}

impl Default for Rounding {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Decimal {
    pub(crate) const ZERO: Self = Self::small(0, 0);

    const fn small(units: i128, scale: u32) -> Self {
        Self { units: Units::Small(units), scale }
    }

    /// A number of a big integer, reduced to a machine word if it fits.
    fn fitted(mut units: BigInt, mut scale: u32) -> Self {
        let ten = BigInt::from(10);
        loop {
            if let Some(small) = units.to_i128() {
                return Self::small(small, scale);
            }
            if scale == 0 || !(&units % &ten).is_zero() {
                return Self { units: Units::Wide(units.into()), scale };
            }
            units /= &ten;
            scale -= 1;
        }
    }

    pub(crate) fn whole(number: i128) -> Self {
        Self::small(number, 0)
    }

    pub(crate) fn of_small(units: i64, scale: u32) -> Self {
        Self::small(units.into(), scale)
    }

    /// The number as (units, scale), if the units fit into 64 bits.
    #[inline]
    pub(crate) fn to_small(&self) -> Option<(i64, u32)> {
        match &self.units {
            Units::Small(units) => Some((i64::try_from(*units).ok()?, self.scale)),
            Units::Wide(_) => None,
        }
    }

    /// Adds `units / 10^scale`.
    #[inline]
    pub(crate) fn add(&mut self, units: i128, scale: u32) {
        if let Units::Small(sum) = &mut self.units
            && self.scale == scale
            && let Some(more) = sum.checked_add(units)
        {
            *sum = more;
        } else {
            *self = self.plus_unlike(&Self::small(units, scale));
        }
    }

    pub(crate) fn is_zero(&self) -> bool {
        matches!(self.units, Units::Small(0))
    }

    pub(crate) fn is_negative(&self) -> bool {
        match &self.units {
            Units::Small(units) => *units < 0,
            Units::Wide(units) => units.is_negative(),
        }
    }

    pub(crate) fn negated(&self) -> Self {
        match &self.units {
            Units::Small(units) if *units != i128::MIN => Self::small(-units, self.scale),
            _ => Self::fitted(-self.big(), self.scale),
        }
    }

    #[inline]
    pub(crate) fn plus(&self, other: &Self) -> Self {
        if let (Units::Small(left), Units::Small(right)) = (&self.units, &other.units)
            && self.scale == other.scale
            && let Some(sum) = left.checked_add(*right)
        {
            return Self::small(sum, self.scale);
        }
        self.plus_unlike(other)
    }

    fn plus_unlike(&self, other: &Self) -> Self {
        let scale = self.scale.max(other.scale);
        if let (Some(left), Some(right)) = (self.small_at(scale), other.small_at(scale))
            && let Some(sum) = left.checked_add(right)
        {
            return Self::small(sum, scale);
        }
        Self::fitted(self.big_at(scale) + other.big_at(scale), scale)
    }

    #[inline]
    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.plus(&other.negated())
    }

    /// The product; `None` beyond the limits.
    #[inline]
    pub(crate) fn times(&self, other: &Self) -> Option<Self> {
        let scale = self.scale + other.scale;
        if scale > SCALE_MAX {
            return None;
        }
        if let (Units::Small(left), Units::Small(right)) = (&self.units, &other.units)
            && let Some(product) = left.checked_mul(*right)
        {
            return Some(Self::small(product, scale));
        }
        let (left, right) = (self.big(), other.big());
        let fits = left.bits() + right.bits() <= BITS_MAX;
        fits.then(|| Self::fitted(left * right, scale))
    }

    /// Remainder of the division, with the sign of `self`; `None` for a division by zero.
    pub(crate) fn remainder(&self, other: &Self) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        let scale = self.scale.max(other.scale);
        if let (Some(left), Some(right)) = (self.small_at(scale), other.small_at(scale)) {
            return Some(Self::small(left.checked_rem(right).unwrap_or(0), scale));
        }
        Some(Self::fitted(self.big_at(scale) % other.big_at(scale), scale))
    }

    /// `self / other`, rounded; `None` for a division by zero.
    pub(crate) fn quotient(&self, other: &Self, rounding: Rounding) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        // The quotient equals that of the units times 10^`tens`.
        let tens = other.scale as i64 - self.scale as i64;
        let decimals = self.decimals(other, tens, rounding);
        let tens = decimals as i64 + tens;
        if let (Units::Small(above), Units::Small(below)) = (&self.units, &other.units)
            && let Some(power) = small_power(tens.unsigned_abs())
        {
            let scaled = if tens < 0 {
                Some(*above).zip(below.checked_mul(power))
            } else {
                above.checked_mul(power).zip(Some(*below))
            };
            if let Some(units) = scaled.and_then(|(above, below)| nearest(above, below)) {
                return Some(Self::small(units, decimals));
            }
        }
        let power = Pow::pow(BigInt::from(10), tens.unsigned_abs());
        let (mut above, mut below) = (self.big(), other.big());
        if tens < 0 {
            below *= power
        } else {
            above *= power
        }
        let is_negative = above.is_negative() != below.is_negative();
        let (above, below) = (above.abs(), below.abs());
        let units: BigInt = (&above * 2 + &below) / (below * 2);
        Some(Self::fitted(if is_negative { -units } else { units }, decimals))
    }

    /// Number of decimals of a quotient of the units times 10^`tens`.
    fn decimals(&self, other: &Self, tens: i64, rounding: Rounding) -> u32 {
        if self.is_zero() {
            return 0;
        }
        // Position of the first significant digit, or one more than it. An exact comparison
        // decides, so that equal numbers get equal digits however they are written.
        let place = self.length() as i64 - other.length() as i64 + tens;
        let wanted = |place: i64| (i64::from(rounding.digits) - 1 - place).max(0) as u32;
        if wanted(place - 1) <= rounding.decimals {
            return rounding.decimals;
        }
        let first = if self.reaches(other, place - tens) { place } else { place - 1 };
        wanted(first).max(rounding.decimals)
    }

    /// Whether the units are at least those of `other` times 10^`zeros`, signs aside.
    fn reaches(&self, other: &Self, zeros: i64) -> bool {
        if let (Units::Small(left), Units::Small(right)) = (&self.units, &other.units)
            && let Some(power) = small_power(zeros.unsigned_abs())
        {
            let [left, right, power] = [*left, *right, power].map(i128::unsigned_abs);
            let (left, right) = if zeros < 0 {
                (left.checked_mul(power), Some(right))
            } else {
                (Some(left), right.checked_mul(power))
            };
            if let (Some(left), Some(right)) = (left, right) {
                return left >= right;
            }
        }
        let power = Pow::pow(BigInt::from(10), zeros.unsigned_abs());
        let (mut left, mut right) = (self.big().abs(), other.big().abs());
        if zeros < 0 {
            left *= power
        } else {
            right *= power
        }
        left >= right
    }

    /// Number of digits of the units.
    fn length(&self) -> u32 {
        match &self.units {
            Units::Small(units) => {
                let units = units.unsigned_abs();
                // 64-bit operations are much faster.
                let log = match u64::try_from(units) {
                    Ok(units) => units.checked_ilog10(),
                    Err(_) => units.checked_ilog10(),
                };
                log.map_or(1, |log| log + 1)
            }
            Units::Wide(units) => units.magnitude().to_string().len() as u32,
        }
    }

    /// Compares two numbers.
    #[inline]
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let scale = self.scale.max(other.scale);
        match (self.small_at(scale), other.small_at(scale)) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => self.big_at(scale).cmp(&other.big_at(scale)),
        }
    }

    /// The number as an `i64`, if it is whole and fits.
    pub(crate) fn to_i64(&self) -> Option<i64> {
        let power = small_power(self.scale.into())?;
        match &self.units {
            Units::Small(units) if units % power == 0 => i64::try_from(units / power).ok(),
            _ => None,
        }
    }

    #[inline]
    fn small_at(&self, scale: u32) -> Option<i128> {
        match &self.units {
            Units::Small(units) if self.scale == scale => Some(*units),
            Units::Small(units) => units.checked_mul(small_power((scale - self.scale).into())?),
            Units::Wide(_) => None,
        }
    }

    fn big(&self) -> BigInt {
        match &self.units {
            Units::Small(units) => BigInt::from(*units),
            Units::Wide(units) => (**units).clone(),
        }
    }

    fn big_at(&self, scale: u32) -> BigInt {
        let power = if scale == self.scale {
            BigInt::one()
        } else {
            Pow::pow(BigInt::from(10), scale - self.scale)
        };
        self.big() * power
    }

    /// Parses all of `text`, like the filter language. `None` if it is no number or has too many
    /// digits.
    #[inline]
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        match Self::parse_small(text) {
            Some((units, scale)) => Some(Self::of_small(units, scale)),
            None => parse_any(text).map(|(units, scale)| Self::fitted(units, scale)),
        }
    }

    /// Fast path of [`parse`](Self::parse) for texts without exponent; returns (units, scale).
    #[inline]
    pub(crate) fn parse_small(text: &[u8]) -> Option<(i64, u32)> {
        text::parse_small(text)
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

impl Display for Decimal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write(&mut text);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

#[inline]
fn small_power(exponent: u64) -> Option<i128> {
    const POWERS: [i128; 39] = {
        let mut powers = [1; 39];
        let mut at = 1;
        while at < powers.len() {
            powers[at] = powers[at - 1] * 10;
            at += 1;
        }
        powers
    };
    POWERS.get(usize::try_from(exponent).ok()?).copied()
}

/// `above / below`, rounded to the nearest integer, halves away from zero.
fn nearest(above: i128, below: i128) -> Option<i128> {
    let is_negative = (above < 0) != (below < 0);
    let (above, below) = (above.unsigned_abs(), below.unsigned_abs());
    let (whole, rest) = match (u64::try_from(above), u64::try_from(below)) {
        // 64-bit divisions are much faster.
        (Ok(above), Ok(below)) => (u128::from(above / below), u128::from(above % below)),
        _ => (above / below, above % below),
    };
    let units = i128::try_from(whole + u128::from(rest >= below - rest)).ok()?;
    Some(if is_negative { -units } else { units })
}
