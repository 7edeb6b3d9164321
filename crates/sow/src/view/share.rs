//! What a row has put into its group: kept, to be taken out again without reading the row.

use super::datum::Datum;
use super::decimal::{Decimal, Rounding};
use super::exact::Exact;
use super::formula::{Formula, Leaves};
use smallvec::SmallVec;

/// What a row has put into its group.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    pub(crate) place: SharePlace,
    /// A bit for each value that the row is grouped by: set if it is no text.
    pub(crate) plain: u64,
    /// The values of all arguments.
    pub(crate) inputs: SmallVec<[Input; 2]>,
}

/// Where a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharePlace {
    Group(u32),
    /// A value that it would be grouped by is NULL.
    Stray,
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
    Other(Box<Datum<'static>>),
}

// Two of them and the rest of a share fit into a cache line.
const _: () = assert!(size_of::<Input>() == 16 && size_of::<Option<Share>>() <= 64);

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

    /// As much of what `formula` yields as is needed.
    #[inline]
    pub(crate) fn of<L: Leaves>(formula: &Formula, need: Need, leaves: &L) -> Self {
        match formula.small(leaves) {
            Some((units, scale)) if need < Need::Whole => Self::Number { units, scale },
            _ => Self::new(formula.datum(leaves), need),
        }
    }

    /// As much of `datum` as is needed. Quotients are rounded: what goes into sums is a decimal.
    #[inline]
    pub(crate) fn new(datum: Datum<'_>, need: Need) -> Self {
        match (&datum, need) {
            (Datum::Null, _) => Self::Null,
            (_, Need::Presence) => Self::PRESENT,
            (Datum::Nan, _) => Self::Nan,
            (Datum::Text(_), Need::Whole) => Self::other(datum),
            _ => match datum.number().as_deref() {
                Some(Exact::Decimal(number)) => Self::number(number),
                Some(quotient) => Self::number(&quotient.rounded(Rounding::FINE)),
                None => Self::other(datum),
            },
        }
    }

    #[inline]
    fn number(number: &Decimal) -> Self {
        match number.to_small() {
            Some((units, scale)) => Self::Number { units, scale },
            None => Self::other(Datum::Number(Exact::Decimal(number.clone()))),
        }
    }

    #[cold]
    fn other(datum: Datum<'_>) -> Self {
        Self::Other(Box::new(datum.into_owned()))
    }

    #[inline]
    pub(crate) const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The number, if it is one.
    pub(crate) fn decimal(&self) -> Option<Decimal> {
        match self {
            Self::Number { units, scale } => Some(Decimal::of_small(*units, *scale)),
            Self::Other(datum) => match &**datum {
                Datum::Number(Exact::Decimal(number)) => Some(number.clone()),
                _ => None,
            },
            Self::Null | Self::Nan => None,
        }
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Other(datum) => match &**datum {
                Datum::Text(text) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }
}
