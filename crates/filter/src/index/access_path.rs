//! Selects the predicates by which an index finds a filter.

use super::key::{Key, KeyHasher};
use super::ordinal;
use super::range_index::Range;
use crate::expr::{Expr, Literal};
use crate::fields::Slot;
use crate::normalize::{constant, membership};
use crate::predicate::literal_number;
use crate::ternary::{Semantics, Ternary};
use crate::value::Comparison;
use std::collections::{HashMap, HashSet};

/// Most alternatives of a disjunction with an access path each.
const ALTERNATIVES_MAX: usize = 8;

/// An access path: key, range and residual condition all have to hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AccessPath {
    /// Field that must equal one of these values.
    pub(crate) keys: Option<(Slot, Vec<Key>)>,
    pub(crate) range: Option<RangeCondition>,
    /// Remaining condition.
    pub(crate) residual: Option<Expr<Slot>>,
}

impl AccessPath {
    /// Whether one message can take this path twice: a text that spells a number can equal a text
    /// and a number.
    pub(crate) fn repeats(&self) -> bool {
        // Only a set that mixes numbers and texts can be reached twice by one value.
        let keys = self.keys.as_ref().map_or(&[][..], |(_, keys)| keys);
        keys.iter().any(Key::is_number) && !keys.iter().all(Key::is_number)
    }
}

/// A range for the value of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RangeCondition {
    pub(crate) slot: Slot,
    pub(crate) mode: RangeMode,
    pub(crate) range: Range,
}

/// Meaning of a range for a field with several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeMode {
    /// One value lies within the range (BETWEEN, =).
    Within,
    /// One value exceeds the lower end, and possibly another one is below the upper end.
    Between,
}

/// Number of distinct values per field among all filters: the estimate of selectivity.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cardinality {
    values: HashMap<Slot, HashSet<Key>>,
}

/// Counting stops at this number.
const COUNTED_MAX: usize = 4_096;

impl Cardinality {
    fn count(&mut self, slot: Slot, keys: &[Key]) -> usize {
        let values = self.values.entry(slot).or_default();
        // Beyond the limit counting stops, which bounds the memory.
        if values.len() < COUNTED_MAX {
            values.extend(keys);
        }
        values.len()
    }

    /// Resets a slot that is released for reuse.
    pub(crate) fn reset(&mut self, slot: Slot) {
        self.values.remove(&slot);
    }
}

/// Access paths to the condition `expr`, in normal form. Empty if it can never hold.
pub(crate) fn access_paths(
    expr: &Expr<Slot>,
    semantics: Semantics,
    cardinality: &mut Cardinality,
    hasher: &KeyHasher,
) -> Vec<AccessPath> {
    let access_paths = alternatives(expr, semantics, cardinality, hasher);
    access_paths.into_iter().map(|(_, path)| path).collect()
}

/// Access paths to the condition `expr`, each with the alternative it belongs to.
pub(crate) fn alternatives<'a>(
    expr: &'a Expr<Slot>,
    semantics: Semantics,
    cardinality: &mut Cardinality,
    hasher: &KeyHasher,
) -> Vec<(&'a Expr<Slot>, AccessPath)> {
    let mut path_to = |expr: &'a Expr<Slot>| Some((expr, access_path(expr, cardinality, hasher)?));
    // Under AMPS semantics NULL on the left decides, so alternatives are not independent.
    if let Expr::Or(parts) = expr
        && semantics == Semantics::Sql
        && parts.len() <= ALTERNATIVES_MAX
    {
        let access_paths: Vec<(&Expr<Slot>, AccessPath)> =
            parts.iter().filter_map(&mut path_to).collect();
        // One alternative without key or range needs every message, so the others would save
        // nothing.
        if access_paths.iter().all(|(_, path)| path.keys.is_some() || path.range.is_some()) {
            return access_paths;
        }
    }
    path_to(expr).into_iter().collect()
}

/// Access path to `expr`, or `None` if it can never hold.
fn access_path(
    expr: &Expr<Slot>,
    cardinality: &mut Cardinality,
    hasher: &KeyHasher,
) -> Option<AccessPath> {
    let mut rest: Vec<&Expr<Slot>> = match expr {
        Expr::And(parts) => parts.iter().collect(),
        _ => vec![expr],
    };
    // A conjunct that is never TRUE makes the filter match nothing: no access path leads to it.
    if rest.iter().any(|part| constant(part).is_some_and(|truth| truth != Ternary::True)) {
        return None;
    }
    // Constant conjuncts are TRUE here and need no check.
    rest.retain(|part| constant(part).is_none());
    let keys = take_keys(&mut rest, cardinality, hasher)?;
    // The range is tried on a copy, because a key may make it superfluous.
    let mut others = rest.clone();
    let mut range = take_range(&mut others);
    if keys.is_none() || others.is_empty() {
        rest = others;
    } else {
        // Few filters remain behind a key; evaluating their residuals beats a range lookup.
        range = None;
    }
    let residual = match &*rest {
        [] => None,
        [only] => Some((*only).clone()),
        _ => Some(Expr::And(rest.into_iter().cloned().collect())),
    };
    Some(AccessPath { keys, range, residual })
}

/// Removes the most selective equality from `rest`. `None` if some equality can never hold.
fn take_keys(
    rest: &mut Vec<&Expr<Slot>>,
    cardinality: &mut Cardinality,
    hasher: &KeyHasher,
) -> Option<Option<(Slot, Vec<Key>)>> {
    let mut best: Option<(usize, usize, Slot, Vec<Key>)> = None;
    for (at, part) in rest.iter().enumerate() {
        let Some((slot, set)) = membership(part) else { continue };
        let mut keys = Vec::new();
        for member in set {
            if let Expr::Literal(literal) = member {
                keys.extend(Key::of_literal(*slot, literal, hasher));
            }
        }
        keys.sort_unstable();
        keys.dedup();
        // A set of values that equal nothing never holds, so the filter needs no access path.
        if keys.is_empty() {
            return None;
        }
        // More distinct values per accepted value mean fewer messages behind each key.
        // The factor keeps three decimals of the quotient without floating point.
        let rarity = 1_000 * cardinality.count(*slot, &keys) / keys.len();
        if best.as_ref().is_none_or(|best| best.0 < rarity) {
            best = Some((rarity, at, *slot, keys));
        }
    }
    Some(best.map(|(_, at, slot, keys)| {
        rest.remove(at);
        (slot, keys)
    }))
}

/// Removes the narrowest range from `rest`, with all predicates that it implies.
fn take_range(rest: &mut Vec<&Expr<Slot>>) -> Option<RangeCondition> {
    // Joined ranges, with the positions of their parts in `rest`.
    let mut joined: Vec<(RangeCondition, Vec<usize>)> = Vec::new();
    // Places in `joined` of one-sided limits. There are few for each slot: a limit that fits none
    // excludes all values of the others.
    let mut places: HashMap<Slot, Vec<usize>> = HashMap::new();
    for (at, part) in rest.iter().enumerate() {
        let Some(limits) = limits(part) else { continue };
        if limits.mode == RangeMode::Between {
            let places = places.entry(limits.slot).or_default();
            let both = places.iter().find_map(|&place| Some((place, joined[place].0.and(limits)?)));
            if let Some((place, both)) = both {
                joined[place].0 = both;
                joined[place].1.push(at);
                continue;
            }
            places.push(joined.len());
        }
        joined.push((limits, vec![at]));
    }
    // Shorter ranges tend to select fewer messages.
    let (limits, parts) =
        joined.into_iter().min_by_key(|(limits, _)| limits.range.high - limits.range.low)?;
    let (mut at, mut parts) = (0, parts.into_iter().peekable());
    rest.retain(|_| {
        let is_part = parts.next_if_eq(&at).is_some();
        at += 1;
        !is_part
    });
    Some(limits)
}

impl RangeCondition {
    /// Intersection of two ranges, if one range can express it.
    fn and(self, other: Self) -> Option<Self> {
        let is_alike = self.slot == other.slot
            && (self.mode, other.mode) == (RangeMode::Between, RangeMode::Between);
        let low = self.range.low.max(other.range.low);
        let high = self.range.high.min(other.range.high);
        // Several values may satisfy two BETWEEN ranges separately; only one-sided limits
        // intersect.
        (is_alike && low <= high).then_some(Self { range: Range { low, high }, ..self })
    }
}

/// The range that the predicate `expr` is equivalent to, if any.
fn limits(expr: &Expr<Slot>) -> Option<RangeCondition> {
    let place = |literal: &Literal| ordinal::of_limit(literal_number(literal)?);
    let limits = match expr {
        // Normalization has put the field on the left.
        Expr::Compare(comparison, parts) => {
            let [Expr::Field(slot), Expr::Literal(literal)] = &**parts else { return None };
            let place = place(literal)?;
            let (mode, low, high) = match comparison {
                Comparison::Equal => (RangeMode::Within, place, place),
                // All numbers but one do not form a range.
                Comparison::NotEqual => return None,
                // Ordinals of limits are even and not 0, so a neighbour exists on either side.
                Comparison::Less => (RangeMode::Between, 0, place - 1),
                Comparison::LessOrEqual => (RangeMode::Between, 0, place),
                Comparison::Greater => (RangeMode::Between, place + 1, u64::MAX),
                Comparison::GreaterOrEqual => (RangeMode::Between, place, u64::MAX),
            };
            RangeCondition { slot: *slot, mode, range: Range { low, high } }
        }
        Expr::Between(parts) => match &**parts {
            [Expr::Field(slot), Expr::Literal(low), Expr::Literal(high)] => {
                let range = Range { low: place(low)?, high: place(high)? };
                RangeCondition { slot: *slot, mode: RangeMode::Within, range }
            }
            _ => return None,
        },
        _ => return None,
    };
    // An empty range is left to the residual condition.
    (limits.range.low <= limits.range.high).then_some(limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Number;

    /// `/slot comparison number`
    fn limit(slot: u16, comparison: Comparison, number: i64) -> Expr<Slot> {
        let number = Expr::Literal(Literal::Int(number));
        Expr::Compare(comparison, [Expr::Field(Slot(slot)), number].into())
    }

    #[test]
    fn the_narrowest_range_of_a_field_takes_all_that_it_implies() {
        use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual};
        let parts = [
            limit(0, Greater, 1),
            limit(1, Greater, 5),
            limit(0, LessOrEqual, 900),
            limit(1, LessOrEqual, 9),
            limit(2, Less, 7),
            limit(1, GreaterOrEqual, 6),
            limit(1, Less, 3),
        ];
        let mut rest: Vec<&Expr<Slot>> = parts.iter().collect();
        let place = |number| ordinal::of_limit(Number::Int(number)).expect("a place");
        let range = Range { low: place(6), high: place(9) };
        let wanted = RangeCondition { slot: Slot(1), mode: RangeMode::Between, range };
        assert_eq!(take_range(&mut rest), Some(wanted));
        assert_eq!(rest, [&parts[0], &parts[2], &parts[4], &parts[6]]);
    }
}
