//! Values of messages and filters, and their comparison.

use crate::number::Number;
use crate::ternary::Ternary;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Display, Formatter};

/// One value of a field or an expression. An empty text counts as NULL.
#[derive(Clone, Copy, Debug, Default)]
pub enum Value<'a> {
    /// The field is absent, null or empty.
    #[default]
    Null,
    /// A truth value; as a number 1 or 0.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer above `i64::MAX`.
    Uint(u64),
    /// Any other number.
    Float(f64),
    /// Bytes, compared bytewise or as the number that they spell.
    Text(&'a [u8]),
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl<'a> Value<'a> {
    /// Whether the value is NULL or an empty text.
    #[inline]
    pub fn is_null(self) -> bool {
        matches!(self, Self::Null | Self::Text([]))
    }

    /// The value as a number, parsed if it is a text.
    #[inline]
    pub fn number(self) -> Option<Number> {
        match self {
            Self::Null => None,
            Self::Bool(truth) => Some(Number::Int(truth.into())),
            Self::Int(number) => Some(Number::Int(number)),
            Self::Uint(number) => Some(Number::Uint(number)),
            Self::Float(number) => Some(Number::Float(number)),
            Self::Text(text) => Number::parse(text),
        }
    }

    /// The text of this value; empty if it is NULL.
    pub(crate) fn to_text(self) -> Cow<'a, [u8]> {
        match self {
            Self::Null => Cow::Borrowed(b""),
            Self::Text(text) => Cow::Borrowed(text),
            Self::Bool(truth) => Cow::Borrowed(if truth { b"true" } else { b"false" }),
            _ => Cow::Owned(
                self.number().map(|number| number.to_string().into()).unwrap_or_default(),
            ),
        }
    }

    /// Evaluates `self comparison other`; unknown if one of them is NULL.
    ///
    /// Two texts compare bytewise, all other pairs as numbers. A text that is not a number is
    /// greater than any number. NaN is unequal to everything.
    #[inline]
    pub fn compare(self, comparison: Comparison, other: Value<'_>) -> Ternary {
        if self.is_null() || other.is_null() {
            return Ternary::Unknown;
        }
        comparison.accepts(self.order(other)).into()
    }

    /// Order of two values other than NULL; `None` if one is NaN.
    #[inline]
    fn order(self, other: Value<'_>) -> Option<Ordering> {
        // Two texts compare as bytes, even if both spell numbers.
        if let (Self::Text(left), Value::Text(right)) = (self, other) {
            return Some(left.cmp(right));
        }
        match (self.number(), other.number()) {
            (Some(left), Some(right)) => left.order(right),
            // Numbers are less than other texts; NaN has no order.
            (Some(left), None) => (!left.is_nan()).then_some(Ordering::Less),
            (None, Some(right)) => (!right.is_nan()).then_some(Ordering::Greater),
            (None, None) => None,
        }
    }
}

impl Comparison {
    /// Whether operands in this `order` satisfy the comparison.
    #[inline]
    pub fn accepts(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            // Values without an order, such as NaN, are unequal.
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => order.is_some_and(Ordering::is_le),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }

    /// The comparison with its operands exchanged.
    pub fn mirrored(self) -> Self {
        match self {
            Self::Equal | Self::NotEqual => self,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
        }
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl From<Number> for Value<'_> {
    #[inline]
    fn from(number: Number) -> Self {
        match number {
            Number::Int(number) => Self::Int(number),
            Number::Uint(number) => Self::Uint(number),
            Number::Float(number) => Self::Float(number),
        }
    }
}

impl From<Ternary> for Value<'_> {
    fn from(truth: Ternary) -> Self {
        match truth {
            Ternary::False => Self::Bool(false),
            Ternary::Unknown => Self::Null,
            Ternary::True => Self::Bool(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, Ternary, Value};
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    use Value::{Bool, Float, Int, Null, Text, Uint};

    #[test]
    fn null_compares_with_no_value() {
        for comparison in [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual] {
            for (left, right) in [(Null, Null), (Null, Int(1)), (Text(b""), Text(b"a"))] {
                assert_eq!(left.compare(comparison, right), Ternary::Unknown);
                assert_eq!(right.compare(comparison, left), Ternary::Unknown);
            }
        }
    }

    #[test]
    fn comparisons_hold_as_their_signs_say_and_mirrored() {
        for (left, comparison, right) in [
            (Text(b"2.000"), NotEqual, Text(b"2.0")),
            (Text(b"2.000"), Equal, Int(2)),
            (Text(b"10"), Less, Text(b"9")),
            (Text(b"10"), Greater, Int(9)),
            (Text(b"abc"), Greater, Float(1e300)),
            (Text(b"abc"), NotEqual, Int(0)),
            (Bool(true), Equal, Int(1)),
            (Bool(false), Less, Bool(true)),
            (Uint(u64::MAX), Greater, Int(i64::MAX)),
            (Int(5), LessOrEqual, Float(5.0)),
            (Int(5), GreaterOrEqual, Float(5.0)),
            (Float(f64::NAN), NotEqual, Float(f64::NAN)),
            (Float(f64::NAN), NotEqual, Text(b"abc")),
            (Text(b"IBM"), LessOrEqual, Text(b"IBM")),
        ] {
            assert_eq!(left.compare(comparison, right), Ternary::True, "{left:?} {right:?}");
            assert_eq!(right.compare(comparison.mirrored(), left), Ternary::True);
        }
    }

    #[test]
    fn nan_is_neither_less_nor_greater() {
        for comparison in [Equal, Less, LessOrEqual, Greater, GreaterOrEqual] {
            for other in [Int(1), Float(f64::NAN), Text(b"abc")] {
                assert_eq!(Float(f64::NAN).compare(comparison, other), Ternary::False);
                assert_eq!(other.compare(comparison, Float(f64::NAN)), Ternary::False);
            }
        }
    }
}
