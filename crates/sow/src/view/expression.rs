//! Compiled expressions of views: exact arithmetic, everything else as in the filter language.

use super::decimal::Rounding;
use super::rational::Rational;
use super::value::ViewValue;
use lanecast_filter::Function;
use lanecast_filter::expr::{Arithmetic, Expr, Literal};
use lanecast_filter::interpreter::{self, Environment, FieldSource};
use lanecast_filter::path::Path;
use lanecast_filter::ternary::{Semantics, Ternary};
use lanecast_filter::value::{Comparison, Value};
use std::convert::Infallible;

/// Most digits behind the decimal point of a small number.
const SMALL_SCALE_MAX: u32 = 36;

/// An expression with numbered leaves.
#[derive(Clone, Debug)]
pub(crate) enum CompiledExpr {
    Leaf(usize),
    Constant(ViewValue<'static>),
    Negate(Box<Self>),
    Arithmetic(Arithmetic, Box<[Self; 2]>),
    Absolute(Box<Self>),
    Compare(Comparison, Box<[Self; 2]>),
    Not(Box<Self>),
    And(Box<[Self]>),
    Or(Box<[Self]>),
    If(Box<[Self]>),
    Coalesce(Box<[Self]>),
    /// Any other expression, with its operands as numbered fields.
    Other(Box<Expr<usize>>, Box<[Self]>),
}

impl CompiledExpr {
    /// Compiles `expr`; `leaf` recognizes and numbers its leaves.
    pub(crate) fn new<E>(
        expr: &Expr,
        leaf: &mut dyn FnMut(&Expr) -> Result<Option<usize>, E>,
    ) -> Result<Self, E> {
        if let Some(number) = leaf(expr)? {
            return Ok(Self::Leaf(number));
        }
        let mut parts =
            expr.parts().map(|part| Self::new(part, leaf)).collect::<Result<Vec<_>, E>>()?;
        Ok(match expr {
            Expr::Literal(literal) => Self::Constant(ViewValue::from(literal.value()).into_owned()),
            Expr::Negate(_) => Self::Negate(parts.remove(0).into()),
            Expr::Not(_) => Self::Not(parts.remove(0).into()),
            Expr::Call(Function::Abs, _) => Self::Absolute(parts.remove(0).into()),
            Expr::Arithmetic(operation, _) => Self::Arithmetic(*operation, pair(parts)),
            Expr::Compare(comparison, _) => Self::Compare(*comparison, pair(parts)),
            Expr::And(_) => Self::And(parts.into()),
            Expr::Or(_) => Self::Or(parts.into()),
            Expr::Call(Function::If, _) => Self::If(parts.into()),
            Expr::Call(Function::Coalesce, _) => Self::Coalesce(parts.into()),
            _ => Self::Other(shell(expr).into(), parts.into()),
        })
    }

    #[inline]
    pub(crate) fn value<'a, L: Leaves>(&'a self, leaves: &'a L) -> ViewValue<'a> {
        match self {
            Self::Leaf(number) => leaves.leaf(*number),
            Self::Constant(value) => value.clone(),
            Self::Arithmetic(operation, parts) => {
                compute(*operation, &parts[0].value(leaves), &parts[1].value(leaves))
            }
            _ => self.rare_datum(leaves),
        }
    }

    /// Fast path for numbers of up to 64 bits; `None` if it does not apply.
    #[inline]
    pub(crate) fn small<L: Leaves>(&self, leaves: &L) -> Option<(i64, u32)> {
        match self {
            Self::Leaf(number) => leaves.small(*number),
            Self::Constant(ViewValue::Number(Rational::Decimal(number))) => number.to_small(),
            Self::Arithmetic(operation, parts) => {
                let (left, scale) = parts[0].small(leaves)?;
                let (right, right_scale) = parts[1].small(leaves)?;
                let (is_like, product_scale) = (scale == right_scale, scale + right_scale);
                match operation {
                    Arithmetic::Multiply if product_scale <= SMALL_SCALE_MAX => {
                        Some((left.checked_mul(right)?, product_scale))
                    }
                    Arithmetic::Add if is_like => Some((left.checked_add(right)?, scale)),
                    Arithmetic::Subtract if is_like => Some((left.checked_sub(right)?, scale)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn rare_datum<'a, L: Leaves>(&'a self, leaves: &'a L) -> ViewValue<'a> {
        match self {
            Self::Negate(part) => unary(&part.value(leaves), Rational::negated),
            Self::Absolute(part) => unary(&part.value(leaves), |number| {
                if number.is_negative() { number.negated() } else { number.clone() }
            }),
            Self::If(parts) => {
                let holds = parts[0].truth(leaves) == Ternary::True;
                parts[if holds { 1 } else { 2 }].value(leaves)
            }
            Self::Coalesce(parts) => {
                let mut data = parts.iter().map(|part| part.value(leaves));
                data.find(|value| !value.is_null()).unwrap_or(ViewValue::Null)
            }
            Self::Other(shell, parts) => {
                let is_call = matches!(**shell, Expr::Call(..));
                let parts =
                    Parts(parts.iter().map(|part| part.argument(leaves, is_call)).collect());
                let environment = Environment::default();
                interpreter::with_value(shell, &parts, &environment, Semantics::Sql, |value| {
                    ViewValue::from(value).into_owned()
                })
            }
            Self::Leaf(_) | Self::Constant(_) | Self::Arithmetic(..) => self.value(leaves),
            _ => match self.truth(leaves) {
                Ternary::Unknown => ViewValue::Null,
                truth => ViewValue::Bool(truth == Ternary::True),
            },
        }
    }

    fn truth<L: Leaves>(&self, leaves: &L) -> Ternary {
        let truth = |part: &Self| part.truth(leaves);
        match self {
            Self::Not(part) => !part.truth(leaves),
            Self::And(parts) => Semantics::Sql.all(parts.iter().map(truth)),
            Self::Or(parts) => Semantics::Sql.any(parts.iter().map(truth)),
            Self::Compare(comparison, parts) => {
                parts[0].value(leaves).compare(*comparison, &parts[1].value(leaves))
            }
            // Anything that is not a condition is compared with zero.
            _ => {
                let zero = ViewValue::Number(Rational::whole(0));
                self.value(leaves).compare(Comparison::NotEqual, &zero)
            }
        }
    }

    /// Operand for the filter language. Functions get numbers as text, in full precision.
    fn argument<L: Leaves>(&self, leaves: &L, is_text: bool) -> ViewValue<'static> {
        match self.value(leaves) {
            ViewValue::Number(number) if is_text => {
                let mut text = Vec::new();
                number.rounded(Rounding::DEFAULT).write(&mut text);
                ViewValue::text(text)
            }
            value => value.into_owned(),
        }
    }
}

/// Source of the leaves' values.
pub(crate) trait Leaves {
    fn leaf(&self, number: usize) -> ViewValue<'_>;

    /// The value as (units, scale), if it is a small number.
    fn small(&self, _number: usize) -> Option<(i64, u32)> {
        None
    }
}

/// Operands of an expression, by number.
#[derive(Debug)]
struct Parts<'a>(Vec<ViewValue<'a>>);

impl FieldSource<usize> for Parts<'_> {
    fn values<'a>(&'a self, part: &'a usize) -> impl Iterator<Item = Value<'a>> {
        self.0.get(*part).map(ViewValue::value).into_iter()
    }

    fn size_bytes(&self) -> usize {
        0
    }
}

fn pair(parts: Vec<CompiledExpr>) -> Box<[CompiledExpr; 2]> {
    parts.try_into().map(Box::new).expect("the parser gives it two sides")
}

/// `expr` with its operands replaced by their numbers. Patterns stay: they are not values.
fn shell(expr: &Expr) -> Expr<usize> {
    let named = expr.rename(&mut |_: &Path| Ok::<_, Infallible>(usize::MAX));
    let mut shell = named.unwrap_or(Expr::Literal(Literal::Null));
    for (number, part) in shell.parts_mut().enumerate() {
        if !matches!(part, Expr::Pattern(_)) {
            *part = Expr::Field(number);
        }
    }
    shell
}

#[inline]
fn compute<'a>(
    operation: Arithmetic,
    left: &ViewValue<'_>,
    right: &ViewValue<'_>,
) -> ViewValue<'a> {
    if left.is_null() || right.is_null() {
        return ViewValue::Null;
    }
    let (Some(left), Some(right)) = (left.number(), right.number()) else {
        return ViewValue::Nan;
    };
    let divides = matches!(operation, Arithmetic::Divide | Arithmetic::Remainder);
    if divides && right.is_zero() {
        return ViewValue::Null;
    }
    left.compute(operation, &right).into()
}

fn unary<'a>(value: &ViewValue<'_>, operate: impl FnOnce(&Rational) -> Rational) -> ViewValue<'a> {
    if value.is_null() {
        return ViewValue::Null;
    }
    value.number().map(|number| operate(&number)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_filter::{FilterLimits, parse_expr};

    struct Texts(Vec<String>);

    impl Leaves for Texts {
        fn leaf(&self, number: usize) -> ViewValue<'_> {
            ViewValue::text(self.0[number].as_bytes())
        }
    }

    /// The value of `text` with the fields `/a = 7`, `/b = 2`, `/c = x`, and `/d`, which is NULL.
    fn shown(text: &str) -> String {
        let expr = parse_expr(text, &FilterLimits::DEFAULT).expect(text);
        let names = ["/a", "/b", "/c", "/d"];
        let formula = CompiledExpr::new::<Infallible>(&expr, &mut |part| {
            Ok(match part {
                Expr::Field(path) => names.iter().position(|name| path.to_string() == *name),
                _ => None,
            })
        });
        let texts = Texts(["7", "2", "x", ""].map(str::to_owned).into());
        let Ok(formula) = formula;
        match formula.value(&texts) {
            ViewValue::Number(number) => number.rounded(Rounding::DEFAULT).to_string(),
            ViewValue::Text(text) => String::from_utf8_lossy(&text).into_owned(),
            ViewValue::Bool(truth) => truth.to_string(),
            ViewValue::Null => "NULL".to_owned(),
            ViewValue::Nan => "NaN".to_owned(),
        }
    }

    #[test]
    fn arithmetic_is_exact_and_divides_to_the_last_digit() {
        for (text, result) in [
            ("/a / /b", "3.5"),
            ("0.1 + 0.2", "0.3"),
            ("/a / 3 * 3", "7"),
            ("-/a + ABS(/b - /a)", "-2"),
            ("/a % 4", "3"),
            ("/a / 0", "NULL"),
            ("/a * /d", "NULL"),
            ("/a * /c", "NaN"),
            ("1e300 * 1e300 / 1e299", &format!("1{}", "0".repeat(301))),
        ] {
            assert_eq!(shown(text), result, "{text}");
        }
    }

    #[test]
    fn conditions_and_functions_are_those_of_filters() {
        for (text, result) in [
            ("IF(/a > /b * 3, 'more', 'less')", "more"),
            ("IF(/d > 1, 'more', /c)", "x"),
            ("COALESCE(/d, /a + 1)", "8"),
            ("CONCAT(/c, '-', /a / 3)", "x-2.333333"),
            ("UPPER(/c)", "X"),
            ("/a + 1 BETWEEN 8 AND 9", "true"),
            ("/a * 10 IN (70, 71) AND NOT /c LIKE '^y'", "true"),
            ("/d = 1 OR /a = 7", "true"),
            ("/d IS NULL", "true"),
            ("/d = 1", "NULL"),
            ("REGEXP_REPLACE(CONCAT('n', /a), '[0-9]', '#')", "n#"),
        ] {
            assert_eq!(shown(text), result, "{text}");
        }
    }
}
