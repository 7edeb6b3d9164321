//! Reference evaluation of expressions by walking their tree. Plans and indexes must agree with it.
//!
//! A field may have several values: a condition holds if any value satisfies it; functions and
//! arithmetic use the first.

use crate::arithmetic;
use crate::builtins::{self, Computed};
use crate::expr::Expr;
use crate::function::Function;
use crate::path::Path;
use crate::ternary::{Semantics, Ternary};
use crate::value::{Comparison, Value};

/// Access to the fields of a message, named by `F`.
pub trait FieldSource<F = Path> {
    /// The values of `field`; empty if it is absent.
    fn values<'a>(&'a self, field: &'a F) -> impl Iterator<Item = Value<'a>>;

    /// Bytes of the message.
    fn size_bytes(&self) -> usize;
}

/// Context of a message that functions can query.
#[derive(Clone, Copy, Debug, Default)]
pub struct Environment<'a> {
    /// Topic of the message, for `TOPIC_NAME()`.
    pub topic: &'a str,
    /// Name of the publisher, for `CLIENT_NAME()`.
    pub client: &'a str,
    /// Time in nanoseconds since 1970, for `UNIX_TIMESTAMP()`.
    pub unix_ns: u64,
}

/// Evaluates the condition `expr` for `record`.
pub fn evaluate<F, R: FieldSource<F>>(
    expr: &Expr<F>,
    record: &R,
    environment: &Environment<'_>,
    semantics: Semantics,
) -> Ternary {
    Interpreter { record, environment, semantics }.truth(expr)
}

/// Passes the value of `expr` to `inspect`; the value may borrow from the record.
pub fn with_value<F, R: FieldSource<F>, T>(
    expr: &Expr<F>,
    record: &R,
    environment: &Environment<'_>,
    semantics: Semantics,
    inspect: impl FnOnce(Value<'_>) -> T,
) -> T {
    inspect(Interpreter { record, environment, semantics }.value(expr).value())
}

/// Evaluation of trees for one record.
#[derive(Debug)]
pub(crate) struct Interpreter<'a, R> {
    pub(crate) record: &'a R,
    pub(crate) environment: &'a Environment<'a>,
    pub(crate) semantics: Semantics,
}

impl<'a, R> Interpreter<'a, R> {
    pub(crate) fn truth<F>(&self, expr: &'a Expr<F>) -> Ternary
    where
        R: FieldSource<F>,
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
                // Both bounds concern one value, so the semantics of the filter do not matter here.
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
                if value.is_null() {
                    Ternary::Unknown
                } else {
                    pattern.is_match(&value.to_text()).into()
                }
            }),
            Expr::IsNull(part) => {
                // `IS NULL` is never UNKNOWN.
                (!self.any(part, |value| (!value.is_null()).into())).eq(&Ternary::True).into()
            }
            Expr::IsNan(part) => {
                self.any(part, |value| value.number().is_some_and(|number| number.is_nan()).into())
            }
            // A value used as a condition means `value <> 0`.
            _ => self.any(expr, |value| value.compare(Comparison::NotEqual, Value::Int(0))),
        }
    }

    pub(crate) fn value<F>(&self, expr: &'a Expr<F>) -> Computed<'a>
    where
        R: FieldSource<F>,
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
                // Only the selected branch is evaluated.
                let holds = self.truth(&parts[0]) == Ternary::True;
                self.value(&parts[if holds { 1 } else { 2 }])
            }
            Expr::Call(Function::Coalesce, parts) => {
                let values = parts.iter().map(|part| self.value(part));
                values.into_iter().find(|value| !value.value().is_null()).unwrap_or(Computed::NULL)
            }
            Expr::Call(function, parts) => self.call(*function, parts),
            // A pattern has no value: functions read it from their arguments.
            Expr::Pattern(_) => Computed::NULL,
            _ => self.truth(expr).into(),
        }
    }

    /// The value of a function other than IF and COALESCE.
    fn call<F>(&self, function: Function, parts: &'a [Expr<F>]) -> Computed<'a>
    where
        R: FieldSource<F>,
    {
        let array = |parts: &'a [Expr<F>]| {
            let field = match parts.first() {
                Some(Expr::Field(field)) => Some(field),
                _ => None,
            };
            field.into_iter().flat_map(|field| self.record.values(field))
        };
        let computed = |part| self.value(part);
        match function {
            Function::ClientName => Value::Text(self.environment.client.as_bytes()).into(),
            Function::TopicName => Value::Text(self.environment.topic.as_bytes()).into(),
            Function::MessageSize => Value::Int(self.record.size_bytes() as i64).into(),
            Function::UnixTimestamp => Value::Float(self.environment.unix_ns as f64 / 1e9).into(),
            // A server replaces this call by its name when it accepts a filter.
            Function::InstanceName => Computed::NULL,
            Function::ArrayCount => Value::Int(array(parts).count() as i64).into(),
            Function::ArrayToString => {
                let separator = parts.get(1).map_or(Computed::NULL, computed);
                let present = array(parts).filter(|value| !value.is_null());
                builtins::concat(present.map(Value::to_text), &separator.value().to_text())
            }
            _ => {
                let computed: Vec<Computed<'a>> = parts.iter().map(computed).collect();
                let arguments: Vec<Value<'_>> = computed.iter().map(Computed::value).collect();
                let pattern = match parts.get(1) {
                    Some(Expr::Pattern(pattern)) => Some(pattern),
                    _ => None,
                };
                builtins::call(function, &arguments, pattern)
            }
        }
    }

    /// Whether `holds` for any value of `expr`; a field without values counts as NULL.
    fn any<F>(&self, expr: &'a Expr<F>, mut holds: impl FnMut(Value<'_>) -> Ternary) -> Ternary
    where
        R: FieldSource<F>,
    {
        let Expr::Field(field) = expr else {
            return holds(self.value(expr).value());
        };
        // An absent field is tested once, as NULL.
        let mut values = self.record.values(field);
        let first = holds(values.next().unwrap_or_default());
        // Several values are alternatives under either semantics.
        Semantics::Sql.any(std::iter::once(first).chain(values.map(holds)))
    }

    /// Whether `holds` for any pair of a value of `expr` and a value of any member of `set`.
    fn any_of<F>(
        &self,
        expr: &'a Expr<F>,
        set: &'a [Expr<F>],
        holds: impl Fn(Value<'_>, Value<'_>) -> Ternary,
    ) -> Ternary
    where
        R: FieldSource<F>,
    {
        self.any(expr, |value| {
            let truths = set.iter().map(|member| self.any(member, |member| holds(value, member)));
            Semantics::Sql.any(truths)
        })
    }
}

fn texts(left: Value<'_>, right: Value<'_>, holds: impl FnOnce(&[u8], &[u8]) -> bool) -> Ternary {
    if left.is_null() || right.is_null() {
        return Ternary::Unknown;
    }
    holds(&left.to_text(), &right.to_text()).into()
}
