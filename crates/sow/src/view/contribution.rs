//! Contribution of a row to its group, kept so that it can be retracted without parsing the old
//! record.

use super::decimal::{Decimal, Rounding};
use super::expression::{CompiledExpr, Leaves};
use super::rational::Rational;
use super::value::ViewValue;
use smallvec::SmallVec;

/// Contribution of a row to its group.
#[derive(Clone, Debug)]
pub(crate) struct Contribution {
    pub(crate) group_id: GroupRef,
    /// Bitmap of grouping values that are not texts.
    pub(crate) non_text: u64,
    /// Values of all arguments.
    pub(crate) inputs: SmallVec<[Input; 2]>,
}

/// Group of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupRef {
    Group(u32),
    /// A grouping value is NULL.
    Ungrouped,
}

/// Input of an accumulator. Kept per row, so the common case is small.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Null,
    /// Result of arithmetic on something that is not a number.
    Nan,
    Number {
        units: i64,
        /// Digits behind the decimal point.
        scale: u32,
    },
    /// A text, or a number of more than 64 bits.
    Other(Box<ViewValue<'static>>),
}

// Two inputs and the rest of a contribution fit into a cache line.
const _: () = assert!(size_of::<Input>() == 16 && size_of::<Option<Contribution>>() <= 64);

/// Part of an argument that accumulators need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// Whether it is NULL.
    Presence,
    /// The number, or the text if it is none.
    Number,
    /// The value itself: a text that looks like a number stays a text.
    Whole,
}

impl Input {
    const PRESENT: Self = Self::Number { units: 1, scale: 0 };

    /// The needed part of an expression's value.
    #[inline]
    pub(crate) fn of<L: Leaves>(expr: &CompiledExpr, need: Need, leaves: &L) -> Self {
        match expr.small(leaves) {
            Some((units, scale)) if need < Need::Whole => Self::Number { units, scale },
            _ => Self::new(expr.value(leaves), need),
        }
    }

    /// The needed part of `value`. Quotients are rounded, since sums are decimals.
    #[inline]
    pub(crate) fn new(value: ViewValue<'_>, need: Need) -> Self {
        match (&value, need) {
            (ViewValue::Null, _) => Self::Null,
            (_, Need::Presence) => Self::PRESENT,
            (ViewValue::Nan, _) => Self::Nan,
            (ViewValue::Text(_), Need::Whole) => Self::other(value),
            _ => match value.number().as_deref() {
                Some(Rational::Decimal(number)) => Self::number(number),
                Some(quotient) => Self::number(&quotient.rounded(Rounding::FINE)),
                None => Self::other(value),
            },
        }
    }

    #[inline]
    fn number(number: &Decimal) -> Self {
        match number.to_small() {
            Some((units, scale)) => Self::Number { units, scale },
            None => Self::other(ViewValue::Number(Rational::Decimal(number.clone()))),
        }
    }

    #[cold]
    fn other(value: ViewValue<'_>) -> Self {
        Self::Other(Box::new(value.into_owned()))
    }

    #[inline]
    pub(crate) const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The number, if it is one.
    pub(crate) fn decimal(&self) -> Option<Decimal> {
        match self {
            Self::Number { units, scale } => Some(Decimal::of_small(*units, *scale)),
            Self::Other(value) => match &**value {
                ViewValue::Number(Rational::Decimal(number)) => Some(number.clone()),
                _ => None,
            },
            Self::Null | Self::Nan => None,
        }
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Other(value) => match &**value {
                ViewValue::Text(text) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }
}
