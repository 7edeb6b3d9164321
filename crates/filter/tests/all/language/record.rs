//! A message as a map from paths to values.

use lanecast_filter::expr::Literal;
use lanecast_filter::interpreter::{Environment, FieldSource};
use lanecast_filter::path::Path;
use lanecast_filter::value::Value;
use std::collections::BTreeMap;

/// Environment of all test messages.
pub(crate) const ENVIRONMENT: Environment<'static> =
    Environment { topic: "orders", client: "desk-1", unix_ns: 1_500_000_000 };

#[derive(Clone, Debug, Default)]
pub(crate) struct Values(pub(crate) BTreeMap<Path, Vec<Literal>>);

impl Values {
    /// Parses texts such as `/a=1,'x' /b=NULL`.
    pub(crate) fn of(text: &str) -> Self {
        let fields = text.split_whitespace().map(|field| {
            let (path, values) = field.split_once('=').expect("a field");
            let values = values.split(',').filter(|value| !value.is_empty());
            (path.parse().expect("a path"), values.map(literal).collect())
        });
        Self(fields.collect())
    }
}

/// Parses a single literal.
fn literal(text: &str) -> Literal {
    use lanecast_filter::{Filter, expr::Expr};
    match Filter::parse(text).expect("a value").expr() {
        Expr::Literal(literal) => literal.clone(),
        other => panic!("{other} is no literal"),
    }
}

impl FieldSource for Values {
    fn values<'a>(&'a self, field: &'a Path) -> impl Iterator<Item = Value<'a>> {
        self.0.get(field).into_iter().flatten().map(Literal::value)
    }

    fn size_bytes(&self) -> usize {
        100
    }
}
