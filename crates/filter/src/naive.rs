//! What an expression means, by walking its tree: the reference for every faster way.
//!
//! A field may have several values. A condition on it holds if it holds for any of them; functions
//! and arithmetic look at the first.

use crate::arithmetic;
use crate::call;
use crate::expr::Expr;
use crate::function::Function;
use crate::path::Path;
use crate::truth::{Semantics, Truth};
use crate::value::{Comparison, Value};
use std::borrow::Cow;

/// A message whose fields are named by `F`.
pub trait Record<F = Path> {
    /// The values of `field`, none if it is absent.
    fn values<'a>(&'a self, field: &'a F) -> impl Iterator<Item = Value<'a>>;

    /// Bytes of the message.
    fn size_bytes(&self) -> usize;
}

/// What expressions can ask for beyond the message itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Environment<'a> {
    /// `TOPIC_NAME()`: the topic of the message.
    pub topic: &'a str,
    /// `CLIENT_NAME()`: who published the message.
    pub client: &'a str,
    /// `UNIX_TIMESTAMP()`: nanoseconds since 1970.
    pub unix_ns: u64,
}

/// A value that may have been made on the way.
#[derive(Clone, Debug)]
pub(crate) enum Computed<'a> {
    Value(Value<'a>),
    Text(Vec<u8>),
}

impl Computed<'_> {
    pub(crate) const NULL: Self = Self::Value(Value::Null);

    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Value(value) => *value,
            Self::Text(text) => Value::Text(text),
        }
    }
}

impl<'a, T: Into<Value<'a>>> From<T> for Computed<'a> {
    fn from(value: T) -> Self {
        Self::Value(value.into())
    }
}

/// Whether `record` meets the condition `expr`.
pub fn truth<F, R: Record<F>>(
    expr: &Expr<F>,
    record: &R,
    environment: &Environment<'_>,
    semantics: Semantics,
) -> Truth {
    Walk { record, environment, semantics }.truth(expr)
}

/// Shows `see` the value of `expr`.
pub fn value<F, R: Record<F>, T>(
    expr: &Expr<F>,
    record: &R,
    environment: &Environment<'_>,
    semantics: Semantics,
    see: impl FnOnce(Value<'_>) -> T,
) -> T {
    see(Walk { record, environment, semantics }.value(expr).value())
}

/// One record on its way through trees.
#[derive(Debug)]
pub(crate) struct Walk<'a, R> {
    pub(crate) record: &'a R,
    pub(crate) environment: &'a Environment<'a>,
    pub(crate) semantics: Semantics,
}

impl<'a, R> Walk<'a, R> {
    pub(crate) fn truth<F>(&self, expr: &'a Expr<F>) -> Truth
    where
        R: Record<F>,
    {
        match expr {
            Expr::Not(part) => !self.truth(part),
            Expr::And(parts) => self.semantics.all(parts.iter().map(|part| self.truth(part))),
            Expr::Or(parts) => self.semantics.any(parts.iter().map(|part| self.truth(part))),
            Expr::Compare(comparison, parts) => self.any(&parts[0], |left| {
                self.any(&parts[1], |right| left.compare(*comparison, right))
            }),
            Expr::Between(parts) => self.any(&parts[0], |value| {
                let low = self.any(&parts[1], |low| value.compare(Comparison::GreaterOrEqual, low));
                let high = self.any(&parts[2], |high| value.compare(Comparison::LessOrEqual, high));
                Semantics::Sql.all([low, high])
            }),
            Expr::In(part, set) => {
                self.any_of(part, set, |value, member| value.compare(Comparison::Equal, member))
            }
            Expr::BeginsWith(part, set) => self.any_of(part, set, |value, member| {
                texts(value, member, |text, affix| text.starts_with(affix))
            }),
            Expr::EndsWith(part, set) => self.any_of(part, set, |value, member| {
                texts(value, member, |text, affix| text.ends_with(affix))
            }),
            Expr::Like(part, pattern) => self.any(part, |value| {
                if value.is_null() { Truth::Unknown } else { pattern.is_in(&text(value)).into() }
            }),
            Expr::IsNull(part) => {
                (!self.any(part, |value| (!value.is_null()).into())).eq(&Truth::True).into()
            }
            Expr::IsNan(part) => {
                self.any(part, |value| value.number().is_some_and(|number| number.is_nan()).into())
            }
            // What is no condition stands for `value <> 0`.
            _ => self.any(expr, |value| value.compare(Comparison::NotEqual, Value::Int(0))),
        }
    }

    pub(crate) fn value<F>(&self, expr: &'a Expr<F>) -> Computed<'a>
    where
        R: Record<F>,
    {
        match expr {
            Expr::Literal(literal) => literal.value().into(),
            Expr::Field(field) => self.record.values(field).next().unwrap_or_default().into(),
            Expr::Negate(part) => arithmetic::negate(self.value(part).value()).into(),
            Expr::Arithmetic(operation, parts) => {
                let (left, right) = (self.value(&parts[0]), self.value(&parts[1]));
                arithmetic::compute(*operation, left.value(), right.value()).into()
            }
            Expr::Call(Function::If, parts) => {
                let holds = self.truth(&parts[0]) == Truth::True;
                self.value(&parts[if holds { 1 } else { 2 }])
            }
            Expr::Call(Function::Coalesce, parts) => {
                let values = parts.iter().map(|part| self.value(part));
                values.into_iter().find(|value| !value.value().is_null()).unwrap_or(Computed::NULL)
            }
            Expr::Call(function, parts) => call::call(self, *function, parts),
            Expr::Pattern(_) => Computed::NULL,
            _ => self.truth(expr).into(),
        }
    }

    /// Whether `holds` for any value of `expr`: that of NULL, if it has none.
    fn any<F>(&self, expr: &'a Expr<F>, mut holds: impl FnMut(Value<'_>) -> Truth) -> Truth
    where
        R: Record<F>,
    {
        let Expr::Field(field) = expr else {
            return holds(self.value(expr).value());
        };
        let mut values = self.record.values(field);
        let first = holds(values.next().unwrap_or_default());
        Semantics::Sql.any(std::iter::once(first).chain(values.map(holds)))
    }

    /// Whether `holds` for any value of `expr` with any value of any expression of `set`.
    fn any_of<F>(
        &self,
        expr: &'a Expr<F>,
        set: &'a [Expr<F>],
        holds: impl Fn(Value<'_>, Value<'_>) -> Truth,
    ) -> Truth
    where
        R: Record<F>,
    {
        self.any(expr, |value| {
            let truths = set.iter().map(|member| self.any(member, |member| holds(value, member)));
            Semantics::Sql.any(truths)
        })
    }
}

fn texts(left: Value<'_>, right: Value<'_>, holds: impl FnOnce(&[u8], &[u8]) -> bool) -> Truth {
    if left.is_null() || right.is_null() {
        return Truth::Unknown;
    }
    holds(&text(left), &text(right)).into()
}

/// `value` as a text, empty if it is NULL.
pub(crate) fn text(value: Value<'_>) -> Cow<'_, [u8]> {
    match value {
        Value::Null => Cow::Borrowed(b""),
        Value::Text(text) => Cow::Borrowed(text),
        Value::Bool(truth) => Cow::Borrowed(if truth { b"true" } else { b"false" }),
        _ => Cow::Owned(value.number().map(|number| number.to_string().into()).unwrap_or_default()),
    }
}
