//! By which of its predicates a filter is found: the ways that lead to it.

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

/// Alternatives that a filter may be taken apart into.
const ALTERNATIVES_MAX: usize = 8;

/// A way to a filter: all of it has to hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AccessPath {
    /// A field that has to have one of these values.
    pub(crate) keys: Option<(Slot, Vec<Key>)>,
    pub(crate) range: Option<RangeCondition>,
    /// What else has to hold.
    pub(crate) residual: Option<Expr<Slot>>,
}

impl AccessPath {
    /// Whether one message may come along here twice: a text that writes a number can equal a text
    /// and a number.
    pub(crate) fn repeats(&self) -> bool {
        let keys = self.keys.as_ref().map_or(&[][..], |(_, keys)| keys);
        keys.iter().any(Key::is_number) && !keys.iter().all(Key::is_number)
    }
}

/// Where a field has to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RangeCondition {
    pub(crate) slot: Slot,
    pub(crate) mode: RangeMode,
    pub(crate) range: Range,
}

/// What a range says of a field with several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeMode {
    /// One value has to be within it.
    Within,
    /// One has to be above the lower end and one, maybe another, below the upper end.
    Between,
}

/// Which fields have how many different values, as far as filters tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cardinality {
    values: HashMap<Slot, HashSet<Key>>,
}

/// Values of a field that are counted.
const COUNTED_MAX: usize = 4_096;

impl Cardinality {
    fn count(&mut self, slot: Slot, keys: &[Key]) -> usize {
        let values = self.values.entry(slot).or_default();
        if values.len() < COUNTED_MAX {
            values.extend(keys);
        }
        values.len()
    }

    /// Forgets a slot that may get another field.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.values.remove(&slot);
    }
}

/// The ways to the condition `expr`, in normal form. None, if it never holds.
pub(crate) fn access_paths(
    expr: &Expr<Slot>,
    semantics: Semantics,
    cardinality: &mut Cardinality,
    hasher: &KeyHasher,
) -> Vec<AccessPath> {
    let access_paths = alternatives(expr, semantics, cardinality, hasher);
    access_paths.into_iter().map(|(_, way)| way).collect()
}

/// The ways to the condition `expr`, each with the part of it that it leads to.
pub(crate) fn alternatives<'a>(
    expr: &'a Expr<Slot>,
    semantics: Semantics,
    cardinality: &mut Cardinality,
    hasher: &KeyHasher,
) -> Vec<(&'a Expr<Slot>, AccessPath)> {
    let mut way = |expr: &'a Expr<Slot>| Some((expr, way(expr, cardinality, hasher)?));
    // Where NULL on the left side decides, alternatives cannot stand alone.
    if let Expr::Or(parts) = expr
        && semantics == Semantics::Sql
        && parts.len() <= ALTERNATIVES_MAX
    {
        let access_paths: Vec<(&Expr<Slot>, AccessPath)> =
            parts.iter().filter_map(&mut way).collect();
        if access_paths.iter().all(|(_, way)| way.keys.is_some() || way.range.is_some()) {
            return access_paths;
        }
    }
    way(expr).into_iter().collect()
}

/// The way to `expr`, if it can hold at all.
fn way(expr: &Expr<Slot>, cardinality: &mut Cardinality, hasher: &KeyHasher) -> Option<AccessPath> {
    let mut rest: Vec<&Expr<Slot>> = match expr {
        Expr::And(parts) => parts.iter().collect(),
        _ => vec![expr],
    };
    if rest.iter().any(|part| constant(part).is_some_and(|truth| truth != Ternary::True)) {
        return None;
    }
    rest.retain(|part| constant(part).is_none());
    let keys = take_keys(&mut rest, cardinality, hasher)?;
    let mut others = rest.clone();
    let mut range = take_range(&mut others);
    if keys.is_none() || others.is_empty() {
        rest = others;
    } else {
        // Few are left behind a key. To evaluate the rest of each at once is fastest.
        range = None;
    }
    let residual = match &*rest {
        [] => None,
        [only] => Some((*only).clone()),
        _ => Some(Expr::And(rest.into_iter().cloned().collect())),
    };
    Some(AccessPath { keys, range, residual })
}

/// Takes the equality out of `rest` that fewest messages satisfy. `None` if one is never satisfied.
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
        if keys.is_empty() {
            return None;
        }
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

/// Takes the range out of `rest` that is shortest, with all predicates that it says.
fn take_range(rest: &mut Vec<&Expr<Slot>>) -> Option<RangeCondition> {
    let all: Vec<Option<RangeCondition>> = rest.iter().map(|part| limits(part)).collect();
    let mut best: Option<(RangeCondition, Vec<usize>)> = None;
    for (at, first) in all.iter().enumerate() {
        let Some(mut joined) = *first else { continue };
        let mut parts = vec![at];
        for (other, limits) in all.iter().enumerate().skip(at + 1) {
            if let Some(both) = limits.and_then(|limits| joined.and(limits)) {
                joined = both;
                parts.push(other);
            }
        }
        let length = |limits: &RangeCondition| limits.range.high - limits.range.low;
        if best.as_ref().is_none_or(|(best, _)| length(&joined) < length(best)) {
            best = Some((joined, parts));
        }
    }
    best.map(|(limits, parts)| {
        for at in parts.into_iter().rev() {
            rest.remove(at);
        }
        limits
    })
}

impl RangeCondition {
    /// Both, if one range can say it.
    fn and(self, other: Self) -> Option<Self> {
        let is_alike = self.slot == other.slot
            && (self.mode, other.mode) == (RangeMode::Between, RangeMode::Between);
        let low = self.range.low.max(other.range.low);
        let high = self.range.high.min(other.range.high);
        (is_alike && low <= high).then_some(Self { range: Range { low, high }, ..self })
    }
}

/// The limits that the predicate `expr` sets, if that is all it does.
fn limits(expr: &Expr<Slot>) -> Option<RangeCondition> {
    let place = |literal: &Literal| ordinal::of_limit(literal_number(literal)?);
    let limits = match expr {
        Expr::Compare(comparison, parts) => {
            let [Expr::Field(slot), Expr::Literal(literal)] = &**parts else { return None };
            let place = place(literal)?;
            let (mode, low, high) = match comparison {
                Comparison::Equal => (RangeMode::Within, place, place),
                Comparison::NotEqual => return None,
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
    (limits.range.low <= limits.range.high).then_some(limits)
}
