//! What plans and indexes make of a filter, told to whoever wrote it.

use crate::expr::Expr;
use crate::fields::{Fields, Slot, SlotsTaken};
use crate::filter::Filter;
use crate::index::Access;
use crate::index::key::Hashing;
use crate::index::way::{Variety, Way, alternatives};
use crate::normal;
use crate::plan::{bound, in_order};
use crate::truth::Semantics;

/// How a filter is evaluated, and how an index in which it stands alone finds it.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The filter as plans see it: what can be known in advance is computed, NOT stands before
    /// single predicates only, equalities of one field are gathered.
    pub normal: Expr<String>,
    /// What a message is asked, in this order, until an answer is not TRUE.
    pub steps: Vec<Step>,
    /// The ways of an index to it, any of which will do. None, if it can never hold.
    pub approaches: Vec<Approach>,
}

/// A condition of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The condition.
    pub text: String,
    /// How long it takes, roughly, in comparisons of texts.
    pub cost: usize,
}

/// How an index comes to a filter, or to one of its alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approach {
    /// What leads to it.
    pub access: Access,
    /// The conditions that hold already when it is found.
    pub indexed: Vec<String>,
    /// Those that are evaluated then, the cheap ones first.
    pub residual: Vec<Step>,
}

/// Explains `filter`, whose fields get slots in `fields`.
///
/// # Errors
///
/// If there is no slot left. Then none stays taken.
pub fn explain(filter: &Filter, fields: &mut Fields) -> Result<Explanation, SlotsTaken> {
    let semantics = filter.semantics();
    let expr = bound(&normal::condition(filter.expr(), semantics), fields)?;
    let names = Names(fields);
    let (mut variety, hashing) = (Variety::default(), Hashing::new());
    let ways = alternatives(&expr, semantics, &mut variety, &hashing);
    Ok(Explanation {
        normal: names.named(&expr),
        steps: names.steps(&expr, semantics),
        approaches: ways.iter().map(|(part, way)| names.approach(part, way, semantics)).collect(),
    })
}

/// The names of slots.
struct Names<'a>(&'a Fields);

impl Names<'_> {
    fn named(&self, expr: &Expr<Slot>) -> Expr<String> {
        let named = expr.rename(&mut |slot: &Slot| {
            let path = self.0.path(*slot);
            Ok::<_, std::convert::Infallible>(path.map_or_else(String::new, ToString::to_string))
        });
        match named {
            Ok(expr) => expr,
        }
    }

    fn steps(&self, expr: &Expr<Slot>, semantics: Semantics) -> Vec<Step> {
        let parts = in_order(expr, semantics).into_iter();
        parts
            .map(|(part, node)| Step { text: self.named(part).to_string(), cost: node.cost() })
            .collect()
    }

    fn approach(&self, part: &Expr<Slot>, way: &Way, semantics: Semantics) -> Approach {
        let access = match (&way.keys, way.range, &way.residual) {
            (Some((slot, _)), _, _) => Access::Value(*slot),
            (None, Some(limits), _) => Access::Range(limits.slot),
            (None, None, Some(_)) => Access::Evaluated,
            (None, None, None) => Access::Every,
        };
        let left = way.residual.as_ref().map_or(&[][..], conjuncts);
        let indexed = conjuncts(part).iter().filter(|part| !left.contains(part));
        let indexed = indexed.filter(|part| normal::constant(part).is_none());
        let residual = way.residual.as_ref();
        Approach {
            access,
            indexed: indexed.map(|part| self.named(part).to_string()).collect(),
            residual: residual.map_or(Vec::new(), |expr| self.steps(expr, semantics)),
        }
    }
}

fn conjuncts(expr: &Expr<Slot>) -> &[Expr<Slot>] {
    match expr {
        Expr::And(parts) => parts,
        other => std::slice::from_ref(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Index;
    use crate::kind::Kind;

    fn explained(text: &str) -> (Explanation, Fields) {
        let (filter, mut fields) = (Filter::parse(text).expect(text), Fields::new(Kind::Fix));
        let explanation = explain(&filter, &mut fields).expect("room");
        (explanation, fields)
    }

    fn texts(steps: &[Step]) -> Vec<&str> {
        steps.iter().map(|step| &*step.text).collect()
    }

    #[test]
    fn cheap_conditions_come_first_and_equality_leads() {
        let (told, _) = explained("/58 like 'big' and /38 >= 5000 and 'IBM' = /55");
        assert_eq!(told.normal.to_string(), "/58 LIKE 'big' AND /38 >= 5000 AND /55 = 'IBM'");
        assert_eq!(texts(&told.steps), ["/55 = 'IBM'", "/38 >= 5000", "/58 LIKE 'big'"]);
        assert!(told.steps.is_sorted_by_key(|step| step.cost));
        let [approach] = &*told.approaches else { panic!("one way: {told:?}") };
        assert_eq!(approach.indexed, ["/55 = 'IBM'"]);
        assert_eq!(texts(&approach.residual), ["/38 >= 5000", "/58 LIKE 'big'"]);
    }

    #[test]
    fn alternatives_have_ways_of_their_own() {
        let (told, fields) = explained("/55 = 'IBM' or /38 > 7 and /44 is null");
        let ways: Vec<_> = told.approaches.iter().map(|way| &*way.indexed[0]).collect();
        assert_eq!(ways, ["/55 = 'IBM'", "/38 > 7"]);
        let Access::Range(slot) = told.approaches[1].access else { panic!("{told:?}") };
        assert_eq!(fields.path(slot).map(ToString::to_string).as_deref(), Some("/38"));
        assert_eq!(texts(&told.approaches[1].residual), ["/44 IS NULL"]);
    }

    #[test]
    fn what_always_or_never_holds_says_so() {
        let (told, _) = explained("1 = 1");
        assert_eq!(told.approaches[0].access, Access::Every);
        assert!(explained("/1 = 1 and 1 = 2").0.approaches.is_empty());
        let (told, _) = explained("/58 like 'x'");
        assert_eq!(told.approaches[0].access, Access::Evaluated);
        assert!(told.approaches[0].indexed.is_empty());
    }

    #[test]
    fn an_index_finds_the_filter_as_explained() {
        for text in [
            "/55 = 'IBM' and /38 > 1",
            "/38 between 1 and 9 or /55 in ('a', 'b')",
            "not /55 = 'x'",
            "/1 = 1 and 2 = 3",
            "upper(/58) = 'X'",
        ] {
            let filter = Filter::parse(text).expect(text);
            let (told, mut fields) = explained(text);
            let placing = Index::new().insert(1, &filter, &mut fields).expect("room");
            let mut ways: Vec<Access> = told.approaches.iter().map(|way| way.access).collect();
            ways.dedup();
            assert_eq!(ways, placing.accesses, "{text}");
        }
    }
}
