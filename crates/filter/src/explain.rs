//! Explains the plan of a filter and its access paths in an index.

use crate::expr::Expr;
use crate::fields::{FieldSet, Slot, TooManyFields};
use crate::filter::Filter;
use crate::index::AccessMethod;
use crate::index::access_path::{AccessPath, Cardinality, alternatives};
use crate::index::key::KeyHasher;
use crate::normalize;
use crate::plan::{bind, ordered_conjuncts};
use crate::ternary::Semantics;

/// Evaluation order of a filter, and the access paths of an index to it.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Normal form: constants folded, NOT in front of single predicates only, equalities of one
    /// field merged.
    pub normal: Expr<String>,
    /// Conditions in evaluation order; evaluation stops at the first that is not TRUE.
    pub steps: Vec<Step>,
    /// Alternative access paths of an index; empty if the filter can never match.
    pub access_plans: Vec<AccessPlan>,
}

/// One condition of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Text of the condition.
    pub text: String,
    /// Estimated cost in text comparisons.
    pub cost: usize,
}

/// One access path of an index to a filter, or to one of its alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessPlan {
    /// Access method.
    pub access: AccessMethod,
    /// Conditions that the access method already guarantees.
    pub indexed: Vec<String>,
    /// Conditions evaluated after access, cheap ones first.
    pub residual: Vec<Step>,
}

/// Explains `filter`; its fields acquire slots in `fields`.
///
/// # Errors
///
/// If no slot is left; all acquired slots are released then.
pub fn explain(filter: &Filter, fields: &mut FieldSet) -> Result<Explanation, TooManyFields> {
    let semantics = filter.semantics();
    let expr = bind(&normalize::condition(filter.expr(), semantics), fields)?;
    let names = Names(fields);
    let (mut cardinality, hasher) = (Cardinality::default(), KeyHasher::new());
    let paths = alternatives(&expr, semantics, &mut cardinality, &hasher);
    Ok(Explanation {
        normal: names.named(&expr),
        steps: names.steps(&expr, semantics),
        access_plans: paths
            .iter()
            .map(|(part, access_path)| names.approach(part, access_path, semantics))
            .collect(),
    })
}

/// Maps slots back to paths.
struct Names<'a>(&'a FieldSet);

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
        let parts = ordered_conjuncts(expr, semantics).into_iter();
        parts
            .map(|(part, node)| Step { text: self.named(part).to_string(), cost: node.cost() })
            .collect()
    }

    fn approach(
        &self,
        part: &Expr<Slot>,
        access_path: &AccessPath,
        semantics: Semantics,
    ) -> AccessPlan {
        let access = match (&access_path.keys, access_path.range, &access_path.residual) {
            (Some((slot, _)), _, _) => AccessMethod::Value(*slot),
            (None, Some(limits), _) => AccessMethod::Range(limits.slot),
            (None, None, Some(_)) => AccessMethod::Evaluated,
            (None, None, None) => AccessMethod::Every,
        };
        let left = access_path.residual.as_ref().map_or(&[][..], conjuncts);
        let indexed = conjuncts(part).iter().filter(|part| !left.contains(part));
        let indexed = indexed.filter(|part| normalize::constant(part).is_none());
        let residual = access_path.residual.as_ref();
        AccessPlan {
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
    use crate::message_type::MessageType;

    fn explained(text: &str) -> (Explanation, FieldSet) {
        let (filter, mut fields) =
            (Filter::parse(text).expect(text), FieldSet::new(MessageType::Fix));
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
        let [approach] = &*told.access_plans else { panic!("one access path: {told:?}") };
        assert_eq!(approach.indexed, ["/55 = 'IBM'"]);
        assert_eq!(texts(&approach.residual), ["/38 >= 5000", "/58 LIKE 'big'"]);
    }

    #[test]
    fn alternatives_have_access_paths_of_their_own() {
        let (told, fields) = explained("/55 = 'IBM' or /38 > 7 and /44 is null");
        let paths: Vec<_> =
            told.access_plans.iter().map(|access_path| &*access_path.indexed[0]).collect();
        assert_eq!(paths, ["/55 = 'IBM'", "/38 > 7"]);
        let AccessMethod::Range(slot) = told.access_plans[1].access else { panic!("{told:?}") };
        assert_eq!(fields.path(slot).map(ToString::to_string).as_deref(), Some("/38"));
        assert_eq!(texts(&told.access_plans[1].residual), ["/44 IS NULL"]);
    }

    #[test]
    fn constant_conditions_are_explained_as_always_or_never() {
        let (told, _) = explained("1 = 1");
        assert_eq!(told.access_plans[0].access, AccessMethod::Every);
        assert!(explained("/1 = 1 and 1 = 2").0.access_plans.is_empty());
        let (told, _) = explained("/58 like 'x'");
        assert_eq!(told.access_plans[0].access, AccessMethod::Evaluated);
        assert!(told.access_plans[0].indexed.is_empty());
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
            let placement = Index::new().insert(1, &filter, &mut fields).expect("room");
            let mut paths: Vec<AccessMethod> =
                told.access_plans.iter().map(|access_path| access_path.access).collect();
            paths.dedup();
            assert_eq!(paths, placement.methods, "{text}");
        }
    }
}
