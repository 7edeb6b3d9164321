//! Three-valued logic of SQL-92, with two variants of AND and OR.

use std::ops::Not;

/// The truth value of a condition. Only `True` selects a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ternary {
    /// The condition does not hold.
    #[default]
    False,
    /// A value in the condition is NULL.
    Unknown,
    /// The condition holds.
    True,
}

impl Not for Ternary {
    type Output = Self;

    #[inline]
    fn not(self) -> Self {
        match self {
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
            Self::True => Self::False,
        }
    }
}

impl From<bool> for Ternary {
    #[inline]
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// Treatment of unknown operands by AND and OR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Semantics {
    /// SQL-92: `NULL AND FALSE` is false, and `NULL OR TRUE` is true.
    #[default]
    Sql,
    /// AMPS: NULL on the left decides, so that `NULL AND FALSE` and `NULL OR TRUE` are NULL.
    Amps,
}

impl Semantics {
    /// Conjunction of `truths`; stops as soon as the result is known.
    #[inline]
    pub fn all(self, truths: impl IntoIterator<Item = Ternary>) -> Ternary {
        self.join(truths, Ternary::True, Ternary::False)
    }

    /// Disjunction of `truths`; stops as soon as the result is known.
    #[inline]
    pub fn any(self, truths: impl IntoIterator<Item = Ternary>) -> Ternary {
        self.join(truths, Ternary::False, Ternary::True)
    }

    #[inline]
    fn join(
        self,
        truths: impl IntoIterator<Item = Ternary>,
        neutral: Ternary,
        decisive: Ternary,
    ) -> Ternary {
        let mut joined = neutral;
        for truth in truths {
            if truth == decisive {
                return decisive;
            }
            if truth == Ternary::Unknown {
                joined = Ternary::Unknown;
                // A decisive operand further right cannot change the result any more.
                if self == Self::Amps {
                    break;
                }
            }
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::{Semantics, Ternary};
    use Ternary::{False, True, Unknown};

    #[test]
    fn the_tables_are_those_of_the_standard_but_for_two_rows() {
        for (left, right, and, or) in [
            (False, False, False, False),
            (False, Unknown, False, Unknown),
            (False, True, False, True),
            (Unknown, Unknown, Unknown, Unknown),
            (True, False, False, True),
            (True, Unknown, Unknown, True),
            (True, True, True, True),
        ] {
            for semantics in [Semantics::Sql, Semantics::Amps] {
                assert_eq!(semantics.all([left, right]), and, "{left:?} AND {right:?}");
                assert_eq!(semantics.any([left, right]), or, "{left:?} OR {right:?}");
            }
        }
        assert_eq!(Semantics::Sql.all([Unknown, False]), False);
        assert_eq!(Semantics::Amps.all([Unknown, False]), Unknown);
        assert_eq!(Semantics::Sql.any([Unknown, True]), True);
        assert_eq!(Semantics::Amps.any([Unknown, True]), Unknown);
        assert_eq!(Semantics::Sql.all([Unknown, True]), Unknown);
        assert_eq!(Semantics::Amps.any([Unknown, False]), Unknown);
    }

    #[test]
    fn negation_swaps_and_with_or() {
        let all = [False, Unknown, True];
        for semantics in [Semantics::Sql, Semantics::Amps] {
            for left in all {
                for right in all {
                    let denied = !semantics.all([left, right]);
                    assert_eq!(denied, semantics.any([!left, !right]));
                }
            }
        }
    }
}
