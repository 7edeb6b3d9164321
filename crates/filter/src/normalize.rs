//! Normal form of a condition: constants folded, NOT in front of single predicates only, fields on
//! the left, nested AND and OR flattened.
//!
//! The normal form has the same truth value as the condition, UNKNOWN included. NOT stays in front
//! of a predicate, because `NOT /a = 1` and `/a <> 1` differ for a field with several values.

use crate::builtins::Computed;
use crate::expr::{Expr, Literal};
use crate::interpreter::{Environment, FieldSource, Interpreter};
use crate::ternary::{Semantics, Ternary};
use crate::value::{Comparison, Value};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

/// Longest text that replaces the expression computing it; longer ones would bloat the plan.
const FOLDED_MAX: usize = 4 * 1024;

/// The condition `expr` in normal form.
pub(crate) fn condition<F: Clone + Eq + Hash>(expr: &Expr<F>, semantics: Semantics) -> Expr<F> {
    Normal { semantics }.condition(expr, false)
}

/// Truth value of a literal condition.
pub(crate) fn constant<F>(expr: &Expr<F>) -> Option<Ternary> {
    match expr {
        Expr::Literal(literal) => {
            Some(literal.value().compare(Comparison::NotEqual, Value::Int(0)))
        }
        _ => None,
    }
}

struct Normal {
    semantics: Semantics,
}

/// A message without fields, to evaluate constant expressions.
struct Nothing;

impl<F> FieldSource<F> for Nothing {
    fn values<'a>(&'a self, _: &'a F) -> impl Iterator<Item = Value<'a>> {
        std::iter::empty()
    }

    fn size_bytes(&self) -> usize {
        0
    }
}

impl Normal {
    /// Normal form of `expr`, or of its negation.
    fn condition<F: Clone + Eq + Hash>(&self, expr: &Expr<F>, is_negated: bool) -> Expr<F> {
        match expr {
            Expr::Not(part) => self.condition(part, !is_negated),
            Expr::And(parts) => self.joined(parts, is_negated, !is_negated),
            Expr::Or(parts) => self.joined(parts, is_negated, is_negated),
            _ => {
                let predicate = self.predicate(expr);
                match constant(&predicate) {
                    Some(truth) => literal(if is_negated { !truth } else { truth }),
                    None if is_negated => Expr::Not(predicate.into()),
                    None => predicate,
                }
            }
        }
    }

    /// Conjunction or disjunction of the normal forms of `parts`; negation swaps them (De Morgan).
    fn joined<F: Clone + Eq + Hash>(
        &self,
        parts: &[Expr<F>],
        is_negated: bool,
        is_and: bool,
    ) -> Expr<F> {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match self.condition(part, is_negated) {
                Expr::And(inner) if is_and => flat.extend(inner),
                Expr::Or(inner) if !is_and => flat.extend(inner),
                other => flat.push(other),
            }
        }
        let neutral = Ternary::from(is_and);
        // Under AMPS semantics the order of operands matters, so constants stay where they are.
        if self.semantics == Semantics::Sql {
            // One FALSE decides a conjunction, one TRUE a disjunction.
            if flat.iter().any(|part| constant(part) == Some(!neutral)) {
                return literal(!neutral);
            }
            flat.retain(|part| constant(part) != Some(neutral));
            if !is_and {
                flat = merge_equalities(flat);
            }
        }
        match flat.len() {
            0 => literal(neutral),
            1 => flat.swap_remove(0),
            _ if is_and => Expr::And(flat),
            _ => Expr::Or(flat),
        }
    }

    /// A predicate with constants folded, its field on the left.
    fn predicate<F: Clone + Eq + Hash>(&self, expr: &Expr<F>) -> Expr<F> {
        let mut expr = expr.clone();
        self.fold(&mut expr);
        match expr {
            // Index and predicates expect the field on the left.
            Expr::Compare(comparison, parts)
                if matches!(&*parts, [Expr::Literal(_), Expr::Field(_)]) =>
            {
                let [left, right] = *parts;
                Expr::Compare(comparison.mirrored(), [right, left].into())
            }
            // A one-element IN is an equality.
            Expr::In(part, mut set) if set.len() == 1 => {
                Expr::Compare(Comparison::Equal, [*part, set.swap_remove(0)].into())
            }
            other => other,
        }
    }

    /// Replaces all subexpressions without fields and message functions by their value.
    fn fold<F>(&self, expr: &mut Expr<F>) {
        // Leaves have nothing to fold.
        if matches!(expr, Expr::Literal(_) | Expr::Field(_) | Expr::Pattern(_)) {
            return;
        }
        if !is_constant(expr) {
            return expr.parts_mut().for_each(|part| self.fold(part));
        }
        let environment = Environment::default();
        let walk =
            Interpreter { record: &Nothing, environment: &environment, semantics: self.semantics };
        let computed = walk.value(expr);
        // A function can make a text much longer than the filter; such a text is computed each
        // time.
        if !matches!(&computed, Computed::Text(text) if text.len() > FOLDED_MAX) {
            let literal = Literal::from(computed.value());
            *expr = Expr::Literal(literal);
        }
    }
}

fn literal<F>(truth: Ternary) -> Expr<F> {
    Expr::Literal(Literal::from(Value::from(truth)))
}

fn is_constant<F>(expr: &Expr<F>) -> bool {
    let mut is_constant = true;
    expr.visit(&mut |part| {
        is_constant &= match part {
            Expr::Field(_) => false,
            // Functions about the message have no value before one arrives.
            Expr::Call(function, _) => !function.is_about_message(),
            _ => true,
        }
    });
    is_constant
}

/// Merges the equalities of one field with literals into one IN, among the alternatives of a
/// disjunction.
fn merge_equalities<F: Clone + Eq + Hash>(parts: Vec<Expr<F>>) -> Vec<Expr<F>> {
    let mut merged: Vec<Expr<F>> = Vec::with_capacity(parts.len());
    // Place in `merged` of the equality of each field.
    let mut places = HashMap::new();
    for part in parts {
        let Some((field, values)) = membership(&part) else {
            merged.push(part);
            continue;
        };
        let place = match places.entry(field.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(merged.len());
                merged.push(part);
                continue;
            }
            Entry::Occupied(entry) => *entry.get(),
        };
        match &mut merged[place] {
            Expr::In(_, set) => set.extend_from_slice(values),
            first => {
                let mut set = membership(first).map_or(Vec::new(), |(_, set)| set.to_vec());
                set.extend_from_slice(values);
                *first = Expr::In(Expr::Field(field.clone()).into(), set);
            }
        }
    }
    merged
}

/// Field and literals of an equality or IN.
pub(crate) fn membership<F>(expr: &Expr<F>) -> Option<(&F, &[Expr<F>])> {
    let (field, set) = match expr {
        Expr::Compare(Comparison::Equal, parts) => (&parts[0], &parts[1..]),
        Expr::In(part, set) => (&**part, &**set),
        _ => return None,
    };
    let Expr::Field(field) = field else { return None };
    set.iter().all(|member| matches!(member, Expr::Literal(_))).then_some((field, set))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::hash::Hasher;

    thread_local!(static COMPARED: Cell<usize> = const { Cell::new(0) });

    /// A field that counts its comparisons.
    #[derive(Clone, Debug)]
    struct Field(usize);

    impl PartialEq for Field {
        fn eq(&self, other: &Self) -> bool {
            COMPARED.set(COMPARED.get() + 1);
            self.0 == other.0
        }
    }

    impl Eq for Field {}

    impl Hash for Field {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    #[test]
    fn equalities_of_many_fields_merge_without_comparing_all_of_them() {
        let equal = |field, value| {
            let value = Expr::Literal(Literal::Int(value));
            Expr::Compare(Comparison::Equal, [Expr::Field(Field(field)), value].into())
        };
        let parts = (0..4_000).map(|number| equal(number / 2, number as i64)).collect();
        let Expr::Or(merged) = condition(&Expr::Or(parts), Semantics::Sql) else { panic!("an OR") };
        assert!(COMPARED.get() < 20_000, "{} comparisons", COMPARED.get());
        assert_eq!(merged.len(), 2_000);
        for (number, part) in merged.iter().enumerate() {
            let Expr::In(field, set) = part else { panic!("{part:?}") };
            assert_eq!((&**field, set.len()), (&Expr::Field(Field(number)), 2));
        }
    }
}
