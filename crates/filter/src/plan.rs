//! A filter made ready for messages: in normal form, bound to slots, the cheap parts first.

use crate::expr::{Expr, Literal};
use crate::fields::{Fields, Slot, SlotsTaken};
use crate::filter::Filter;
use crate::message::Message;
use crate::naive::Walk;
use crate::normal;
use crate::path::Path;
use crate::predicate::Predicate;
use crate::truth::{Semantics, Truth};

/// A condition on messages whose fields stand in slots. It says what the filter says.
#[derive(Clone, Debug)]
pub struct Plan {
    conjuncts: Box<[Node]>,
    semantics: Semantics,
}

/// A part of a plan.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Constant(Truth),
    /// One field and literals.
    Predicate(Predicate),
    /// Anything else, walked.
    Tree(Box<Expr<Slot>>),
    Not(Box<Self>),
    And(Box<[Self]>),
    Or(Box<[Self]>),
}

impl Plan {
    /// The plan of `filter`, whose fields get slots in `fields`.
    ///
    /// # Errors
    ///
    /// If there is no slot left. Then none stays taken.
    pub fn new(filter: &Filter, fields: &mut Fields) -> Result<Self, SlotsTaken> {
        let semantics = filter.semantics();
        let expr = bound(&normal::condition(filter.expr(), semantics), fields)?;
        Ok(Self::of_condition(&expr, semantics))
    }

    /// The plan of a condition in normal form.
    pub(crate) fn of_condition(expr: &Expr<Slot>, semantics: Semantics) -> Self {
        let parts = in_order(expr, semantics);
        Self { conjuncts: parts.into_iter().map(|(_, node)| node).collect(), semantics }
    }

    /// Whether `message` meets the condition.
    #[inline]
    pub fn holds(&self, message: &Message<'_>) -> bool {
        self.conjuncts.iter().all(|node| node.truth(message, self.semantics) == Truth::True)
    }

    /// What the condition says of `message`.
    pub fn truth(&self, message: &Message<'_>) -> Truth {
        self.semantics.all(self.conjuncts.iter().map(|node| node.truth(message, self.semantics)))
    }

    /// Gives the slots that it took back to `fields`.
    pub fn release(&self, fields: &mut Fields) {
        self.conjuncts.iter().for_each(|node| node.visit_slots(&mut |slot| fields.release(slot)));
    }
}

/// What has to hold for the condition `expr`, in normal form, to hold: the cheap parts first.
pub(crate) fn in_order(expr: &Expr<Slot>, semantics: Semantics) -> Vec<(&Expr<Slot>, Node)> {
    let parts = match expr {
        Expr::And(parts) => parts,
        other => std::slice::from_ref(other),
    };
    let mut parts: Vec<(&Expr<Slot>, Node)> =
        parts.iter().map(|part| (part, Node::new(part, semantics))).collect();
    // The order matters only where NULL on the left side decides.
    if semantics == Semantics::Sql {
        parts.sort_by_key(|(_, node)| node.cost());
    }
    parts
}

/// `expr` with its fields bound to slots: all values of them where they are asked for.
///
/// # Errors
///
/// If there is no slot left. Then none stays taken.
pub(crate) fn bound(expr: &Expr, fields: &mut Fields) -> Result<Expr<Slot>, SlotsTaken> {
    let mut taken = Vec::new();
    let every = of_every_value(expr);
    let result = expr.rename(&mut |path: &Path| {
        let is_every = every.iter().any(|one| std::ptr::eq(*one, path));
        let slot = if is_every { fields.slot_of_every(path) } else { fields.slot(path) }?;
        taken.push(slot);
        Ok(slot)
    });
    if result.is_err() {
        taken.into_iter().for_each(|slot| fields.release(slot));
    }
    result
}

/// The fields that functions of arrays ask for.
fn of_every_value(expr: &Expr) -> Vec<&Path> {
    let mut every = Vec::new();
    expr.visit(&mut |part| match part {
        Expr::Call(function, parts) if function.takes_array() => {
            if let Some(Expr::Field(path)) = parts.first() {
                every.push(path);
            }
        }
        _ => {}
    });
    every
}

impl Node {
    fn new(expr: &Expr<Slot>, semantics: Semantics) -> Self {
        match expr {
            Expr::And(_) => {
                let parts = in_order(expr, semantics);
                Self::And(parts.into_iter().map(|(_, node)| node).collect())
            }
            Expr::Or(list) => {
                let mut parts: Vec<Self> =
                    list.iter().map(|part| Self::new(part, semantics)).collect();
                // As above.
                if semantics == Semantics::Sql {
                    parts.sort_by_key(Self::cost);
                }
                Self::Or(parts.into())
            }
            Expr::Not(part) => Self::Not(Self::new(part, semantics).into()),
            _ => match (normal::constant(expr), Predicate::new(expr)) {
                (Some(truth), _) => Self::Constant(truth),
                (_, Some(predicate)) => Self::Predicate(predicate),
                _ => Self::Tree(expr.clone().into()),
            },
        }
    }

    #[inline]
    fn truth(&self, message: &Message<'_>, semantics: Semantics) -> Truth {
        match self {
            Self::Predicate(predicate) => predicate.truth(message),
            Self::Not(node) => !node.truth(message, semantics),
            _ => self.rare_truth(message, semantics),
        }
    }

    #[inline(never)]
    fn rare_truth(&self, message: &Message<'_>, semantics: Semantics) -> Truth {
        let truth = |node: &Self| node.truth(message, semantics);
        match self {
            Self::Constant(truth) => *truth,
            Self::And(nodes) => semantics.all(nodes.iter().map(truth)),
            Self::Or(nodes) => semantics.any(nodes.iter().map(truth)),
            Self::Tree(expr) => {
                Walk { record: message, environment: message.environment, semantics }.truth(expr)
            }
            _ => self.truth(message, semantics),
        }
    }

    /// How long it takes, roughly, in comparisons.
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

/// Trees are walked, texts made and patterns searched, all of which takes a while.
fn tree_cost(expr: &Expr<Slot>) -> usize {
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
