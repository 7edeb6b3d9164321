//! Evaluation plan of one filter: normalized, fields bound to slots, cheap conditions first.

use crate::expr::{Expr, Literal};
use crate::fields::{FieldSet, Slot, TooManyFields};
use crate::filter::Filter;
use crate::interpreter::Interpreter;
use crate::message::Message;
use crate::normalize;
use crate::path::Path;
use crate::predicate::Predicate;
use crate::ternary::{Semantics, Ternary};
use std::collections::HashSet;

/// A compiled filter over the slots of a row. Equivalent to its filter.
#[derive(Clone, Debug)]
pub struct Plan {
    conjuncts: Box<[PlanNode]>,
    semantics: Semantics,
}

/// A node of a plan.
#[derive(Clone, Debug)]
pub(crate) enum PlanNode {
    Constant(Ternary),
    /// A comparison of one field with literals.
    Predicate(Predicate),
    /// Any other expression, interpreted.
    Tree(Box<Expr<Slot>>),
    Not(Box<Self>),
    And(Box<[Self]>),
    Or(Box<[Self]>),
}

impl Plan {
    /// Compiles `filter` and acquires slots for its fields.
    ///
    /// # Errors
    ///
    /// If no slot is left; all acquired slots are released then.
    pub fn new(filter: &Filter, fields: &mut FieldSet) -> Result<Self, TooManyFields> {
        let semantics = filter.semantics();
        let expr = bind(&normalize::condition(filter.expr(), semantics), fields)?;
        Ok(Self::of_condition(&expr, semantics))
    }

    /// Plan of a condition in normal form.
    pub(crate) fn of_condition(expr: &Expr<Slot>, semantics: Semantics) -> Self {
        let parts = ordered_conjuncts(expr, semantics);
        Self { conjuncts: parts.into_iter().map(|(_, node)| node).collect(), semantics }
    }

    /// Whether `message` satisfies the filter.
    #[inline]
    pub fn matches(&self, message: &Message<'_>) -> bool {
        self.conjuncts.iter().all(|node| node.truth(message, self.semantics) == Ternary::True)
    }

    /// Truth value of the filter for `message`.
    pub fn evaluate(&self, message: &Message<'_>) -> Ternary {
        self.semantics.all(self.conjuncts.iter().map(|node| node.truth(message, self.semantics)))
    }

    /// Releases the acquired slots.
    pub fn release(&self, fields: &mut FieldSet) {
        self.conjuncts.iter().for_each(|node| node.visit_slots(&mut |slot| fields.release(slot)));
    }
}

/// Conjuncts of `expr`, in normal form, with their plan nodes; cheap ones first.
pub(crate) fn ordered_conjuncts(
    expr: &Expr<Slot>,
    semantics: Semantics,
) -> Vec<(&Expr<Slot>, PlanNode)> {
    let parts = match expr {
        Expr::And(parts) => parts,
        other => std::slice::from_ref(other),
    };
    let mut parts: Vec<(&Expr<Slot>, PlanNode)> =
        parts.iter().map(|part| (part, PlanNode::new(part, semantics))).collect();
    // AMPS semantics lets the left operand decide, so only SQL conjuncts may be reordered.
    if semantics == Semantics::Sql {
        parts.sort_by_key(|(_, node)| node.cost());
    }
    parts
}

/// Binds the fields of `expr` to slots; array functions bind all values of their field.
///
/// # Errors
///
/// If no slot is left; all acquired slots are released then.
pub(crate) fn bind(expr: &Expr, fields: &mut FieldSet) -> Result<Expr<Slot>, TooManyFields> {
    let mut taken = Vec::new();
    let every = all_value_paths(expr);
    let result = expr.rename(&mut |path: &Path| {
        // Pointer identity: one path may occur both inside and outside of an array function.
        let is_every = every.contains(&std::ptr::from_ref(path));
        let slot = if is_every { fields.slot_for_all_values(path) } else { fields.slot(path) }?;
        taken.push(slot);
        Ok(slot)
    });
    if result.is_err() {
        // All or nothing: a filter that fails keeps no slots.
        taken.into_iter().for_each(|slot| fields.release(slot));
    }
    result
}

/// Fields of which array functions need all values.
fn all_value_paths(expr: &Expr) -> HashSet<*const Path> {
    let mut every = HashSet::new();
    expr.visit(&mut |part| match part {
        Expr::Call(function, parts) if function.takes_array() => {
            if let Some(Expr::Field(path)) = parts.first() {
                every.insert(std::ptr::from_ref(path));
            }
        }
        _ => {}
    });
    every
}

impl PlanNode {
    fn new(expr: &Expr<Slot>, semantics: Semantics) -> Self {
        match expr {
            Expr::And(_) => {
                let parts = ordered_conjuncts(expr, semantics);
                Self::And(parts.into_iter().map(|(_, node)| node).collect())
            }
            Expr::Or(list) => {
                let mut parts: Vec<Self> =
                    list.iter().map(|part| Self::new(part, semantics)).collect();
                // Reordered under SQL semantics only, as conjuncts are.
                if semantics == Semantics::Sql {
                    parts.sort_by_key(Self::cost);
                }
                Self::Or(parts.into())
            }
            Expr::Not(part) => Self::Not(Self::new(part, semantics).into()),
            _ => match (normalize::constant(expr), Predicate::new(expr)) {
                (Some(truth), _) => Self::Constant(truth),
                // Specialized predicates avoid the interpreter.
                (_, Some(predicate)) => Self::Predicate(predicate),
                _ => Self::Tree(expr.clone().into()),
            },
        }
    }

    #[inline]
    fn truth(&self, message: &Message<'_>, semantics: Semantics) -> Ternary {
        match self {
            Self::Predicate(predicate) => predicate.truth(message),
            Self::Not(node) => !node.truth(message, semantics),
            // Predicates are nearly all nodes; the rest stays out of line to keep this function
            // inlinable.
            _ => self.evaluate_slow(message, semantics),
        }
    }

    #[inline(never)]
    fn evaluate_slow(&self, message: &Message<'_>, semantics: Semantics) -> Ternary {
        let truth = |node: &Self| node.truth(message, semantics);
        match self {
            Self::Constant(truth) => *truth,
            Self::And(nodes) => semantics.all(nodes.iter().map(truth)),
            Self::Or(nodes) => semantics.any(nodes.iter().map(truth)),
            Self::Tree(expr) => {
                Interpreter { record: message, environment: message.environment, semantics }
                    .truth(expr)
            }
            // Predicates and NOT end in `truth`, so the two functions never call each other in
            // circles.
            _ => self.truth(message, semantics),
        }
    }

    /// Estimated cost in text comparisons.
    pub(crate) fn cost(&self) -> usize {
        match self {
            Self::Constant(_) => 0,
            Self::Predicate(predicate) => predicate.cost(),
            Self::Not(node) => node.cost(),
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().map(Self::cost).sum(),
            Self::Tree(expr) => tree_cost(expr),
        }
    }

    fn visit_slots(&self, visit: &mut dyn FnMut(Slot)) {
        match self {
            Self::Constant(_) => {}
            Self::Predicate(predicate) => visit(predicate.slot()),
            Self::Not(node) => node.visit_slots(visit),
            Self::And(nodes) | Self::Or(nodes) => {
                nodes.iter().for_each(|node| node.visit_slots(visit));
            }
            Self::Tree(expr) => expr.fields().into_iter().for_each(|slot| visit(*slot)),
        }
    }
}

/// Estimated cost of interpreting `expr`.
fn tree_cost(expr: &Expr<Slot>) -> usize {
    // The numbers only rank conditions and have no unit.
    let mut cost = 0;
    expr.visit(&mut |part| {
        cost += match part {
            Expr::Like(..) | Expr::Call(..) => 40,
            Expr::Literal(Literal::Text(_)) => 1,
            _ => 5,
        }
    });
    cost
}
