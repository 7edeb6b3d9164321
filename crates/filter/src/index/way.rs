//! By which of its predicates a filter is found: the ways that lead to it.

use super::key::{Hashing, Key};
use super::order;
use super::ranges::Range;
use crate::expr::{Expr, Literal};
use crate::fields::Slot;
use crate::normal::{constant, membership};
use crate::predicate::literal_number;
use crate::truth::{Semantics, Truth};
use crate::value::Comparison;
use std::collections::{HashMap, HashSet};

/// Alternatives that a filter may be taken apart into.
const WAYS_MAX: usize = 8;

/// A way to a filter: all of it has to hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Way {
    /// A field that has to have one of these values.
    pub(crate) keys: Option<(Slot, Vec<Key>)>,
    pub(crate) range: Option<Limits>,
    /// What else has to hold.
    pub(crate) residual: Option<Expr<Slot>>,
}

impl Way {
    /// Whether one message may come along here twice: a text that writes a number can equal a text
    /// and a number.
    pub(crate) fn repeats(&self) -> bool {
        let keys = self.keys.as_ref().map_or(&[][..], |(_, keys)| keys);
        keys.iter().any(Key::is_number) && !keys.iter().all(Key::is_number)
    }
}

/// Where a field has to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) slot: Slot,
    pub(crate) form: Form,
    pub(crate) range: Range,
}

/// What a range says of a field with several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One value has to be within it.
    Within,
    /// One has to be above the lower end and one, maybe another, below the upper end.
    Between,
}

/// Which fields have how many different values, as far as filters tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variety {
    values: HashMap<Slot, HashSet<Key>>,
}

/// Values of a field that are counted.
const COUNTED_MAX: usize = 4_096;

impl Variety {
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
pub(crate) fn ways(
    expr: &Expr<Slot>,
    semantics: Semantics,
    variety: &mut Variety,
    hashing: &Hashing,
) -> Vec<Way> {
    let ways = alternatives(expr, semantics, variety, hashing);
    ways.into_iter().map(|(_, way)| way).collect()
}

/// The ways to the condition `expr`, each with the part of it that it leads to.
pub(crate) fn alternatives<'a>(
    expr: &'a Expr<Slot>,
    semantics: Semantics,
    variety: &mut Variety,
    hashing: &Hashing,
) -> Vec<(&'a Expr<Slot>, Way)> {
    let mut way = |expr: &'a Expr<Slot>| Some((expr, way(expr, variety, hashing)?));
    // Where NULL on the left side decides, alternatives cannot stand alone.
    if let Expr::Or(parts) = expr
        && semantics == Semantics::Sql
        && parts.len() <= WAYS_MAX
    {
        let ways: Vec<(&Expr<Slot>, Way)> = parts.iter().filter_map(&mut way).collect();
        if ways.iter().all(|(_, way)| way.keys.is_some() || way.range.is_some()) {
            return ways;
        }
    }
    way(expr).into_iter().collect()
}

/// The way to `expr`, if it can hold at all.
fn way(expr: &Expr<Slot>, variety: &mut Variety, hashing: &Hashing) -> Option<Way> {
    let mut rest: Vec<&Expr<Slot>> = match expr {
        Expr::And(parts) => parts.iter().collect(),
        _ => vec![expr],
    };
    if rest.iter().any(|part| constant(part).is_some_and(|truth| truth != Truth::True)) {
        return None;
    }
    rest.retain(|part| constant(part).is_none());
    let keys = take_keys(&mut rest, variety, hashing)?;
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
    Some(Way { keys, range, residual })
}

/// Takes the equality out of `rest` that fewest messages satisfy. `None` if one is never satisfied.
fn take_keys(
    rest: &mut Vec<&Expr<Slot>>,
    variety: &mut Variety,
    hashing: &Hashing,
) -> Option<Option<(Slot, Vec<Key>)>> {
    let mut best: Option<(usize, usize, Slot, Vec<Key>)> = None;
    for (at, part) in rest.iter().enumerate() {
        let Some((slot, set)) = membership(part) else { continue };
        let mut keys = Vec::new();
        for member in set {
            if let Expr::Literal(literal) = member {
                keys.extend(Key::of_literal(*slot, literal, hashing));
            }
        }
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            return None;
        }
        let rarity = 1_000 * variety.count(*slot, &keys) / keys.len();
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
fn take_range(rest: &mut Vec<&Expr<Slot>>) -> Option<Limits> {
    let all: Vec<Option<Limits>> = rest.iter().map(|part| limits(part)).collect();
    let mut best: Option<(Limits, Vec<usize>)> = None;
    for (at, first) in all.iter().enumerate() {
        let Some(mut joined) = *first else { continue };
        let mut parts = vec![at];
        for (other, limits) in all.iter().enumerate().skip(at + 1) {
            if let Some(both) = limits.and_then(|limits| joined.and(limits)) {
                joined = both;
                parts.push(other);
            }
        }
        let length = |limits: &Limits| limits.range.high - limits.range.low;
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

impl Limits {
    /// Both, if one range can say it.
    fn and(self, other: Self) -> Option<Self> {
        let is_alike =
            self.slot == other.slot && (self.form, other.form) == (Form::Between, Form::Between);
        let low = self.range.low.max(other.range.low);
        let high = self.range.high.min(other.range.high);
        (is_alike && low <= high).then_some(Self { range: Range { low, high }, ..self })
    }
}

/// The limits that the predicate `expr` sets, if that is all it does.
fn limits(expr: &Expr<Slot>) -> Option<Limits> {
    let place = |literal: &Literal| order::of_limit(literal_number(literal)?);
    let limits = match expr {
        Expr::Compare(comparison, parts) => {
            let [Expr::Field(slot), Expr::Literal(literal)] = &**parts else { return None };
            let place = place(literal)?;
            let (form, low, high) = match comparison {
                Comparison::Equal => (Form::Within, place, place),
                Comparison::NotEqual => return None,
                Comparison::Less => (Form::Between, 0, place - 1),
                Comparison::LessOrEqual => (Form::Between, 0, place),
                Comparison::Greater => (Form::Between, place + 1, u64::MAX),
                Comparison::GreaterOrEqual => (Form::Between, place, u64::MAX),
            };
            Limits { slot: *slot, form, range: Range { low, high } }
        }
        Expr::Between(parts) => match &**parts {
            [Expr::Field(slot), Expr::Literal(low), Expr::Literal(high)] => {
                let range = Range { low: place(low)?, high: place(high)? };
                Limits { slot: *slot, form: Form::Within, range }
            }
            _ => return None,
        },
        _ => return None,
    };
    (limits.range.low <= limits.range.high).then_some(limits)
}
