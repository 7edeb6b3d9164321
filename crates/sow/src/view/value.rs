//! Values of view expressions.

use super::decimal::{Decimal, Rounding};
use super::rational::Rational;
use lanecast_filter::fields::Slot;
use lanecast_filter::row::Row;
use lanecast_filter::ternary::Ternary;
use lanecast_filter::value::{Comparison, Value};
use std::borrow::Cow;
use std::cmp::Ordering;

/// Value of a view expression.
#[derive(Clone, Debug)]
pub(crate) enum ViewValue<'a> {
    Null,
    /// Result of arithmetic on something that is not a number.
    Nan,
    Bool(bool),
    Number(Rational),
    /// Never empty: an empty text is NULL.
    Text(Cow<'a, [u8]>),
}

impl<'a> ViewValue<'a> {
    /// First value of a field, with exact numbers.
    #[inline]
    pub(crate) fn of_field(row: &'a Row, slot: Slot, bytes: &'a [u8]) -> Self {
        match row.value(slot, bytes) {
            Value::Float(number) => match row.text(slot, bytes).and_then(Decimal::parse) {
                Some(number) => Self::Number(Rational::Decimal(number)),
                None => Value::Float(number).into(),
            },
            value => value.into(),
        }
    }

    pub(crate) fn text(text: impl Into<Cow<'a, [u8]>>) -> Self {
        let text = text.into();
        if text.is_empty() { Self::Null } else { Self::Text(text) }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The number, also if it is written as text.
    #[inline]
    pub(crate) fn number(&self) -> Option<Cow<'_, Rational>> {
        match self {
            Self::Null | Self::Nan => None,
            Self::Bool(truth) => Some(Cow::Owned(Rational::whole(*truth))),
            Self::Number(number) => Some(Cow::Borrowed(number)),
            Self::Text(text) => {
                Decimal::parse(text).map(|number| Cow::Owned(Rational::Decimal(number)))
            }
        }
    }

    /// Compares like the filter language: two texts as bytes, anything else as exact numbers.
    pub(crate) fn compare(&self, comparison: Comparison, other: &ViewValue<'_>) -> Ternary {
        if self.is_null() || other.is_null() {
            return Ternary::Unknown;
        }
        let order = match (self, other) {
            (Self::Text(left), ViewValue::Text(right)) => Some(left.cmp(right)),
            (Self::Nan, _) | (_, ViewValue::Nan) => None,
            _ => match (self.number(), other.number()) {
                (Some(left), Some(right)) => left.order(&right),
                (Some(_), None) => Some(Ordering::Less),
                (None, Some(_)) => Some(Ordering::Greater),
                (None, None) => None,
            },
        };
        comparison.accepts(order).into()
    }

    /// The value as input of the filter language.
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Nan => Value::Float(f64::NAN),
            Self::Bool(truth) => Value::Bool(*truth),
            Self::Text(text) => Value::Text(text),
            Self::Number(number) => {
                let number = number.rounded(Rounding::FINE);
                match number.to_i64() {
                    Some(whole) => Value::Int(whole),
                    None => Value::Float(number.to_string().parse().unwrap_or(f64::NAN)),
                }
            }
        }
    }

    pub(crate) fn into_owned(self) -> ViewValue<'static> {
        match self {
            Self::Null => ViewValue::Null,
            Self::Nan => ViewValue::Nan,
            Self::Bool(truth) => ViewValue::Bool(truth),
            Self::Number(number) => ViewValue::Number(number),
            Self::Text(text) => ViewValue::Text(Cow::Owned(text.into_owned())),
        }
    }
}

impl<'a> From<Value<'a>> for ViewValue<'a> {
    #[inline]
    fn from(value: Value<'a>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Bool(truth),
            Value::Int(number) => Self::Number(Rational::whole(number)),
            Value::Uint(number) => Self::Number(Rational::whole(number)),
            Value::Float(number) => match Decimal::of_float(number) {
                Some(number) => Self::Number(Rational::Decimal(number)),
                None => Self::Nan,
            },
            Value::Text(text) => Self::text(text),
        }
    }
}

impl From<Option<Rational>> for ViewValue<'_> {
    fn from(number: Option<Rational>) -> Self {
        number.map_or(Self::Nan, Self::Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Comparison::{Equal, Greater, Less, NotEqual};

    #[test]
    fn values_compare_as_in_filters() {
        let text = |text: &'static str| ViewValue::text(text.as_bytes());
        let number = |text: &str| {
            ViewValue::Number(Rational::Decimal(Decimal::parse(text.as_bytes()).expect("a number")))
        };
        for (left, comparison, right, truth) in [
            (text("10"), Less, text("9"), Ternary::True),
            (text("10"), Greater, number("9"), Ternary::True),
            (text("x"), Greater, number("9"), Ternary::True),
            (text("2.0"), Equal, number("2"), Ternary::True),
            (ViewValue::Nan, NotEqual, number("2"), Ternary::True),
            (ViewValue::Nan, Less, text("x"), Ternary::False),
            (text(""), Equal, text(""), Ternary::Unknown),
            (ViewValue::Bool(true), Equal, number("1"), Ternary::True),
        ] {
            assert_eq!(left.compare(comparison, &right), truth, "{left:?} {right:?}");
        }
    }
}
