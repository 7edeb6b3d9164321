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

/// Most pairs of values that one condition compares if its two sides are fields with several
/// values; beyond it is UNKNOWN.
pub const PAIRS_MAX: usize = 65_536;

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
            Expr::Compare(comparison, parts) => {
                let [left, right] = &**parts;
                self.any_pair(left, std::slice::from_ref(right), |left, right| {
                    left.compare(*comparison, right)
                })
            }
            Expr::Between(parts) => self.between(parts),
            Expr::In(part, set) => {
                self.any_pair(part, set, |value, member| value.compare(Comparison::Equal, member))
            }
            Expr::BeginsWith(part, set) => self.any_pair(part, set, |value, member| {
                texts(value, member, |text, affix| text.starts_with(affix))
            }),
            Expr::EndsWith(part, set) => self.any_pair(part, set, |value, member| {
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
        let operand = self.operand(expr);
        // Several values are alternatives under either semantics.
        Semantics::Sql.any(self.alternatives(&operand).map(&mut holds))
    }

    /// Whether `holds` for any pair of a value of `left` and a value of any member of `set`.
    fn any_pair<F>(
        &self,
        left: &'a Expr<F>,
        set: &'a [Expr<F>],
        holds: impl Fn(Value<'_>, Value<'_>) -> Ternary,
    ) -> Ternary
    where
        R: FieldSource<F>,
    {
        let left = self.operand(left);
        let (has_several, mut pairs) = (self.has_several(&left), PAIRS_MAX);
        let mut joined = Ternary::False;
        for member in set {
            // Evaluated once and not for each value of the left side: nested conditions would cost
            // the product of their values.
            let right = self.operand(member);
            let mut budget = (has_several && self.has_several(&right)).then_some(&mut pairs);
            for value in self.alternatives(&left) {
                match self.any_within(&right, &mut budget, |right| holds(value, right)) {
                    None => return Ternary::Unknown,
                    Some(Ternary::True) => return Ternary::True,
                    Some(truth) => joined = joined.max(truth),
                }
            }
        }
        joined
    }

    /// Whether any value of the first part is between the other two.
    fn between<F>(&self, parts: &'a [Expr<F>; 3]) -> Ternary
    where
        R: FieldSource<F>,
    {
        let [part, low, high] = parts.each_ref().map(|part| self.operand(part));
        let mut pairs = PAIRS_MAX;
        let is_limited =
            self.has_several(&part) && (self.has_several(&low) || self.has_several(&high));
        let mut budget = is_limited.then_some(&mut pairs);
        let mut joined = Ternary::False;
        for value in self.alternatives(&part) {
            let mut meets = |comparison, bound| {
                self.any_within(bound, &mut budget, |bound| value.compare(comparison, bound))
            };
            let low = meets(Comparison::GreaterOrEqual, &low);
            let high = meets(Comparison::LessOrEqual, &high);
            let (Some(low), Some(high)) = (low, high) else { return Ternary::Unknown };
            // Both bounds concern one value, so the semantics of the filter do not matter here.
            match Semantics::Sql.all([low, high]) {
                Ternary::True => return Ternary::True,
                truth => joined = joined.max(truth),
            }
        }
        joined
    }

    /// Whether `holds` for any value of `operand`; each is charged to `budget`. `None` if that is
    /// used up.
    fn any_within<F>(
        &self,
        operand: &Operand<'a, F>,
        budget: &mut Option<&mut usize>,
        holds: impl Fn(Value<'_>) -> Ternary,
    ) -> Option<Ternary>
    where
        R: FieldSource<F>,
    {
        let mut joined = Ternary::False;
        for value in self.alternatives(operand) {
            if let Some(left) = budget {
                **left = left.checked_sub(1)?;
            }
            match holds(value) {
                Ternary::True => return Some(Ternary::True),
                truth => joined = joined.max(truth),
            }
        }
        Some(joined)
    }

    fn operand<F>(&self, expr: &'a Expr<F>) -> Operand<'a, F>
    where
        R: FieldSource<F>,
    {
        match expr {
            Expr::Field(field) => Operand::Field(field),
            _ => Operand::Computed(self.value(expr)),
        }
    }

    /// The values of `operand`, at least one: an absent field counts as NULL.
    fn alternatives<'b, F>(
        &'b self,
        operand: &'b Operand<'a, F>,
    ) -> impl Iterator<Item = Value<'b>> + use<'b, 'a, F, R>
    where
        R: FieldSource<F>,
    {
        let (computed, field) = match operand {
            Operand::Computed(computed) => (Some(computed.value()), None),
            Operand::Field(field) => (None, Some(*field)),
        };
        let mut values = field.into_iter().flat_map(|field| self.record.values(field));
        let first = computed.or_else(|| values.next()).unwrap_or_default();
        std::iter::once(first).chain(values)
    }

    fn has_several<F>(&self, operand: &Operand<'a, F>) -> bool
    where
        R: FieldSource<F>,
    {
        match operand {
            Operand::Field(field) => self.record.values(field).nth(1).is_some(),
            Operand::Computed(_) => false,
        }
    }
}

/// A side of a comparison, evaluated unless it is a field.
enum Operand<'a, F> {
    Computed(Computed<'a>),
    Field(&'a F),
}

fn texts(left: Value<'_>, right: Value<'_>, holds: impl FnOnce(&[u8], &[u8]) -> bool) -> Ternary {
    if left.is_null() || right.is_null() {
        return Ternary::Unknown;
    }
    holds(&left.to_text(), &right.to_text()).into()
}
