//! Specialized predicates: one field compared with literals.

use crate::expr::{Expr, Literal};
use crate::fields::Slot;
use crate::message::Message;
use crate::normalize::membership;
use crate::number::Number;
use crate::ternary::{Semantics, Ternary};
use crate::value::{Comparison, Value};
use std::cmp::Ordering;

/// A comparison of one field with literals.
#[derive(Clone, Debug)]
pub(crate) struct Predicate {
    slot: Slot,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    /// Compare with a number.
    Number(Comparison, Number),
    /// Equal to one text.
    Text(Box<[u8]>),
    /// Between two numbers, inclusive.
    Numbers(Number, Number),
    /// Equal to one of several non-empty texts, sorted.
    Texts(Box<[Box<[u8]>]>),
    /// Compare with any other literal.
    Value(Comparison, Literal),
    /// Equal to one of several other literals.
    Values(Box<[Literal]>),
}

/// Number of texts up to which linear search is faster than binary search.
const FEW: usize = 8;

impl Predicate {
    /// The predicate for `expr`, if it has this form.
    pub(crate) fn new(expr: &Expr<Slot>) -> Option<Self> {
        if let Some((slot, set)) = membership(expr) {
            return Some(Self { slot: *slot, test: Test::membership(set) });
        }
        match expr {
            Expr::Compare(comparison, parts) => match &**parts {
                [Expr::Field(slot), Expr::Literal(literal)] => {
                    let test = match literal_number(literal) {
                        Some(number) => Test::Number(*comparison, number),
                        None => Test::Value(*comparison, literal.clone()),
                    };
                    Some(Self { slot: *slot, test })
                }
                _ => None,
            },
            Expr::Between(parts) => match &**parts {
                [Expr::Field(slot), Expr::Literal(low), Expr::Literal(high)] => {
                    let (low, high) = (literal_number(low)?, literal_number(high)?);
                    Some(Self { slot: *slot, test: Test::Numbers(low, high) })
                }
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn slot(&self) -> Slot {
        self.slot
    }

    /// Estimated cost in text comparisons.
    pub(crate) fn cost(&self) -> usize {
        match &self.test {
            Test::Text(_) => 1,
            Test::Number(..) | Test::Numbers(..) => 2,
            Test::Texts(texts) => 1 + texts.len().min(FEW),
            Test::Value(..) => 3,
            Test::Values(values) => 3 * values.len(),
        }
    }

    #[inline]
    pub(crate) fn truth(&self, message: &Message<'_>) -> Ternary {
        // Fast path: no type dispatch and no numeric parsing for a single text.
        if self.test.is_of_text()
            && let Some(text) = message.row.only_text(self.slot, message.bytes)
        {
            return self.test.truth_of_text(text);
        }
        self.truth_of_any(message)
    }

    /// Evaluates fields that are not a single text. Out of line, so that the common case saves no
    /// registers.
    #[inline(never)]
    fn truth_of_any(&self, message: &Message<'_>) -> Ternary {
        if self.test.is_of_number()
            && let Some(number) = message.row.only_number(self.slot, message.bytes)
        {
            return self.test.truth_of_number(Some(number));
        }
        if message.row.has_several(self.slot) {
            let values = message.row.values(self.slot, message.bytes);
            return Semantics::Sql.any(values.map(|value| self.test.truth(value, value.number())));
        }
        self.test.truth(message.row.value(self.slot, message.bytes), None)
    }
}

impl Test {
    fn membership(set: &[Expr<Slot>]) -> Self {
        let literals = set.iter().filter_map(|member| match member {
            Expr::Literal(literal) => Some(literal.clone()),
            _ => None,
        });
        let mut literals: Vec<Literal> = literals.collect();
        if let [literal] = &*literals {
            return match literal {
                Literal::Text(text) if !text.is_empty() => Self::Text(text.clone()),
                _ => match literal_number(literal) {
                    Some(number) => Self::Number(Comparison::Equal, number),
                    None => Self::Value(Comparison::Equal, literals.swap_remove(0)),
                },
            };
        }
        let texts = literals.iter().map(|literal| match literal {
            Literal::Text(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        });
        match texts.collect::<Option<Vec<_>>>() {
            Some(mut texts) => {
                // Sorted for binary search.
                texts.sort_unstable();
                texts.dedup();
                Self::Texts(texts.into())
            }
            None => Self::Values(literals.into()),
        }
    }

    /// Whether the test compares with non-empty texts only, so that the field need not be parsed as
    /// a number.
    #[inline]
    fn is_of_text(&self) -> bool {
        match self {
            Self::Text(_) | Self::Texts(_) => true,
            Self::Value(_, Literal::Text(text)) => !text.is_empty(),
            _ => false,
        }
    }

    /// Evaluates such a test for a text.
    #[inline(never)]
    fn truth_of_text(&self, value: &[u8]) -> Ternary {
        let is_met = match self {
            Self::Text(text) => value == &**text,
            Self::Texts(texts) => return is_one_of(value, texts),
            Self::Value(Comparison::NotEqual, Literal::Text(text)) => value != &**text,
            Self::Value(comparison, Literal::Text(text)) => {
                comparison.accepts(Some(value.cmp(&**text)))
            }
            _ => return Ternary::Unknown,
        };
        is_met.into()
    }

    /// Whether the test compares with numbers only.
    #[inline]
    fn is_of_number(&self) -> bool {
        matches!(self, Self::Number(..) | Self::Numbers(..))
    }

    /// Evaluates such a test for a value other than NULL; `None` is a text that is not a number.
    #[inline]
    fn truth_of_number(&self, number: Option<Number>) -> Ternary {
        let is_met = match self {
            Self::Number(comparison, other) => comparison.accepts(order(number, *other)),
            Self::Numbers(low, high) => {
                let is_above = order(number, *low).is_some_and(Ordering::is_ge);
                is_above && order(number, *high).is_some_and(Ordering::is_le)
            }
            _ => return Ternary::Unknown,
        };
        is_met.into()
    }

    /// Evaluates the test for `value`; `number` is its numeric value if the test needs one.
    #[inline]
    fn truth(&self, value: Value<'_>, number: Option<Number>) -> Ternary {
        if value.is_null() {
            return Ternary::Unknown;
        }
        match self {
            Self::Number(..) | Self::Numbers(..) => self.truth_of_number(number),
            Self::Text(text) => value.compare(Comparison::Equal, Value::Text(text)),
            Self::Texts(texts) => match value {
                Value::Text(value) => self.truth_of_text(value),
                _ => is_member(value, texts.iter().map(|text| Value::Text(text))),
            },
            Self::Value(comparison, literal) => value.compare(*comparison, literal.value()),
            Self::Values(literals) => is_member(value, literals.iter().map(Literal::value)),
        }
    }
}

#[inline(never)]
fn is_one_of(value: &[u8], texts: &[Box<[u8]>]) -> Ternary {
    let is_one = match texts.len() {
        ..=FEW => texts.iter().any(|text| value == &**text),
        _ => texts.binary_search_by(|text| (**text).cmp(value)).is_ok(),
    };
    is_one.into()
}

fn is_member<'a>(value: Value<'_>, set: impl Iterator<Item = Value<'a>>) -> Ternary {
    Semantics::Sql.any(set.map(|member| value.compare(Comparison::Equal, member)))
}

/// Order of a value other than NULL relative to a number. `None` is a text that is not a number,
/// which is greater than all numbers.
#[inline]
fn order(value: Option<Number>, other: Number) -> Option<Ordering> {
    match value {
        Some(value) => value.order(other),
        None => (!other.is_nan()).then_some(Ordering::Greater),
    }
}

/// The literal as a number. Texts are excluded even if they spell one, because two texts compare
/// bytewise.
pub(crate) fn literal_number(literal: &Literal) -> Option<Number> {
    match literal {
        Literal::Null | Literal::Text(_) => None,
        _ => literal.value().number(),
    }
}
