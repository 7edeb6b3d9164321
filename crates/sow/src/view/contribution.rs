//! What a row has put into its group: kept, to be taken out again without reading the row.

use super::decimal::{Decimal, Rounding};
use super::expression::{CompiledExpr, Leaves};
use super::rational::Rational;
use super::value::ViewValue;
use smallvec::SmallVec;

/// What a row has put into its group.
#[derive(Clone, Debug)]
pub(crate) struct Contribution {
    pub(crate) group_id: GroupRef,
    /// A bit for each value that the row is grouped by: set if it is no text.
    pub(crate) non_text: u64,
    /// The values of all arguments.
    pub(crate) inputs: SmallVec<[Input; 2]>,
}

/// Where a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupRef {
    Group(u32),
    /// A value that it would be grouped by is NULL.
    Ungrouped,
}

/// A value for accumulators. Each row keeps its own, so most are small.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Null,
    /// A number was wanted, and there is none.
    Nan,
    Number {
        units: i64,
        /// Digits behind the point.
        scale: u32,
    },
    /// A text, or a number that is not small.
    Other(Box<ViewValue<'static>>),
}

// Two of them and the rest of a share fit into a cache line.
const _: () = assert!(size_of::<Input>() == 16 && size_of::<Option<Contribution>>() <= 64);

/// What the accumulators want to know of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// Whether it is there.
    Presence,
    /// Its number, or else its text.
    Number,
    /// What it is: a text that writes a number is a text.
    Whole,
}

impl Input {
    const PRESENT: Self = Self::Number { units: 1, scale: 0 };

    /// As much of what `expr` yields as is needed.
    #[inline]
    pub(crate) fn of<L: Leaves>(expr: &CompiledExpr, need: Need, leaves: &L) -> Self {
        match expr.small(leaves) {
            Some((units, scale)) if need < Need::Whole => Self::Number { units, scale },
            _ => Self::new(expr.value(leaves), need),
        }
    }

    /// As much of `value` as is needed. Quotients are rounded: what goes into sums is a decimal.
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
