//! Expression trees and their canonical text.

use crate::function::Function;
use crate::number::Number;
use crate::path::Path;
use crate::pattern::Pattern;
use crate::quoted::write_quoted;
use crate::value::{Comparison, Value};
use std::fmt::{self, Display, Formatter, Write};

/// An expression with fields of type `F`: paths, or slots once bound. Its printed text parses to
/// the same tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr<F = Path> {
    /// A literal value.
    Literal(Literal),
    /// The values of a field.
    Field(F),
    /// A regular expression as an argument of a function.
    Pattern(Pattern),
    /// `-value`
    Negate(Box<Self>),
    /// An arithmetic operation.
    Arithmetic(Arithmetic, Box<[Self; 2]>),
    /// A function call.
    Call(Function, Vec<Self>),
    /// A comparison.
    Compare(Comparison, Box<[Self; 2]>),
    /// `value BETWEEN low AND high`, inclusive.
    Between(Box<[Self; 3]>),
    /// `value IN (value, ...)`
    In(Box<Self>, Vec<Self>),
    /// `text BEGINS WITH (text, ...)`
    BeginsWith(Box<Self>, Vec<Self>),
    /// `text ENDS WITH (text, ...)`
    EndsWith(Box<Self>, Vec<Self>),
    /// `text LIKE pattern`
    Like(Box<Self>, Pattern),
    /// `value IS NULL`
    IsNull(Box<Self>),
    /// `value IS NAN`
    IsNan(Box<Self>),
    /// `NOT condition`
    Not(Box<Self>),
    /// `condition AND condition ...`, at least two.
    And(Vec<Self>),
    /// `condition OR condition ...`, at least two.
    Or(Vec<Self>),
}

/// A literal value in an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `NULL`
    Null,
    /// `TRUE` or `FALSE`
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer above `i64::MAX`.
    Uint(u64),
    /// Any other number.
    Float(f64),
    /// A quoted text.
    Text(Box<[u8]>),
}

/// An arithmetic operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`: integer division for two integers.
    Divide,
    /// `%` or `MOD`: takes the sign of its left operand.
    Remainder,
}

/// Operator precedence, from loosest to tightest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Precedence {
    Or,
    And,
    Not,
    Compare,
    Sum,
    Product,
    Sign,
    Primary,
}

impl Literal {
    /// The literal as a value.
    #[inline]
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(truth) => Value::Bool(*truth),
            Self::Int(number) => Value::Int(*number),
            Self::Uint(number) => Value::Uint(*number),
            Self::Float(number) => Value::Float(*number),
            Self::Text(text) => Value::Text(text),
        }
    }
}

impl From<Value<'_>> for Literal {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Bool(truth),
            Value::Int(number) => Self::Int(number),
            Value::Uint(number) => Self::Uint(number),
            Value::Float(number) => Self::Float(number),
            Value::Text(text) => Self::Text(text.into()),
        }
    }
}

impl<F> Expr<F> {
    /// Direct subexpressions.
    pub fn parts(&self) -> impl Iterator<Item = &Self> {
        let (one, many): (&[Self], &[Self]) = match self {
            Self::Literal(_) | Self::Field(_) | Self::Pattern(_) => (&[], &[]),
            Self::Negate(part) | Self::IsNull(part) | Self::IsNan(part) | Self::Not(part) => {
                (std::slice::from_ref(part), &[])
            }
            Self::Like(part, _) => (std::slice::from_ref(part), &[]),
            Self::Arithmetic(_, parts) | Self::Compare(_, parts) => (&**parts, &[]),
            Self::Between(parts) => (&**parts, &[]),
            Self::Call(_, parts) | Self::And(parts) | Self::Or(parts) => (&[], parts),
            Self::In(part, parts) | Self::BeginsWith(part, parts) | Self::EndsWith(part, parts) => {
                (std::slice::from_ref(part), parts)
            }
        };
        one.iter().chain(many)
    }

    /// Calls `visit` for this expression and all subexpressions, in preorder.
    pub fn visit<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        visit(self);
        for part in self.parts() {
            part.visit(visit);
        }
    }

    /// Direct subexpressions, mutable.
    pub fn parts_mut(&mut self) -> impl Iterator<Item = &mut Self> {
        let (one, many): (&mut [Self], &mut [Self]) = match self {
            Self::Literal(_) | Self::Field(_) | Self::Pattern(_) => (&mut [], &mut []),
            Self::Negate(part) | Self::IsNull(part) | Self::IsNan(part) | Self::Not(part) => {
                (std::slice::from_mut(part), &mut [])
            }
            Self::Like(part, _) => (std::slice::from_mut(part), &mut []),
            Self::Arithmetic(_, parts) | Self::Compare(_, parts) => (&mut **parts, &mut []),
            Self::Between(parts) => (&mut **parts, &mut []),
            Self::Call(_, parts) | Self::And(parts) | Self::Or(parts) => (&mut [], parts),
            Self::In(part, parts) | Self::BeginsWith(part, parts) | Self::EndsWith(part, parts) => {
                (std::slice::from_mut(part), parts)
            }
        };
        one.iter_mut().chain(many)
    }

    /// This expression with each field mapped by `name`.
    ///
    /// # Errors
    ///
    /// The first error of `name`.
    pub fn rename<G, E>(&self, name: &mut dyn FnMut(&F) -> Result<G, E>) -> Result<Expr<G>, E> {
        Ok(match self {
            Self::Literal(literal) => Expr::Literal(literal.clone()),
            Self::Pattern(pattern) => Expr::Pattern(pattern.clone()),
            Self::Field(field) => Expr::Field(name(field)?),
            Self::Negate(part) => Expr::Negate(boxed(part, name)?),
            Self::IsNull(part) => Expr::IsNull(boxed(part, name)?),
            Self::IsNan(part) => Expr::IsNan(boxed(part, name)?),
            Self::Not(part) => Expr::Not(boxed(part, name)?),
            Self::Like(part, pattern) => Expr::Like(boxed(part, name)?, pattern.clone()),
            Self::Arithmetic(operation, parts) => {
                let parts = [parts[0].rename(name)?, parts[1].rename(name)?];
                Expr::Arithmetic(*operation, parts.into())
            }
            Self::Compare(comparison, parts) => {
                let parts = [parts[0].rename(name)?, parts[1].rename(name)?];
                Expr::Compare(*comparison, parts.into())
            }
            Self::Between(parts) => {
                let [value, low, high] = &**parts;
                let parts = [value.rename(name)?, low.rename(name)?, high.rename(name)?];
                Expr::Between(parts.into())
            }
            Self::Call(function, parts) => Expr::Call(*function, listed(parts, name)?),
            Self::In(part, set) => Expr::In(boxed(part, name)?, listed(set, name)?),
            Self::BeginsWith(part, set) => Expr::BeginsWith(boxed(part, name)?, listed(set, name)?),
            Self::EndsWith(part, set) => Expr::EndsWith(boxed(part, name)?, listed(set, name)?),
            Self::And(parts) => Expr::And(listed(parts, name)?),
            Self::Or(parts) => Expr::Or(listed(parts, name)?),
        })
    }

    /// Replaces calls of `INSTANCE_NAME()` by the server name `instance`.
    pub(crate) fn bind_instance_name(&mut self, instance: &str) {
        match self {
            Self::Call(Function::InstanceName, _) => {
                *self = Self::Literal(Literal::from(Value::Text(instance.as_bytes())));
            }
            _ => self.parts_mut().for_each(|part| part.bind_instance_name(instance)),
        }
    }

    /// The fields of this expression, one for each occurrence.
    pub fn fields(&self) -> Vec<&F> {
        let mut fields = Vec::new();
        self.visit(&mut |expr| {
            if let Expr::Field(field) = expr {
                fields.push(field);
            }
        });
        fields
    }

    fn precedence(&self) -> Precedence {
        match self {
            Self::Literal(_) | Self::Field(_) | Self::Pattern(_) | Self::Call(..) => {
                Precedence::Primary
            }
            Self::Negate(_) => Precedence::Sign,
            Self::Arithmetic(operation, _) => operation.precedence(),
            // Predicates print NOT inside: `a NOT IN (b)`.
            Self::Not(part) if part.negatable().is_some() => Precedence::Compare,
            Self::Not(_) => Precedence::Not,
            Self::And(_) => Precedence::And,
            Self::Or(_) => Precedence::Or,
            _ => Precedence::Compare,
        }
    }

    /// Keyword of a predicate that can contain NOT.
    fn negatable(&self) -> Option<&'static str> {
        match self {
            Self::Between(_) => Some("BETWEEN "),
            Self::In(..) => Some("IN "),
            Self::Like(..) => Some("LIKE "),
            Self::BeginsWith(..) => Some("BEGINS WITH "),
            Self::EndsWith(..) => Some("ENDS WITH "),
            Self::IsNull(_) => Some("NULL"),
            Self::IsNan(_) => Some("NAN"),
            _ => None,
        }
    }
}

type Renamed<'a, F, G, E> = &'a mut dyn FnMut(&F) -> Result<G, E>;

fn boxed<F, G, E>(part: &Expr<F>, name: Renamed<'_, F, G, E>) -> Result<Box<Expr<G>>, E> {
    part.rename(name).map(Box::new)
}

fn listed<F, G, E>(parts: &[Expr<F>], name: Renamed<'_, F, G, E>) -> Result<Vec<Expr<G>>, E> {
    parts.iter().map(|part| part.rename(name)).collect()
}

impl Arithmetic {
    pub(crate) fn precedence(self) -> Precedence {
        match self {
            Self::Add | Self::Subtract => Precedence::Sum,
            _ => Precedence::Product,
        }
    }
}

impl<F: Display> Expr<F> {
    /// Writes the expression, in parentheses if it binds more loosely than `least`.
    fn write(&self, least: Precedence, f: &mut Formatter<'_>) -> fmt::Result {
        if self.precedence() < least {
            f.write_char('(')?;
            self.write_bare(f)?;
            return f.write_char(')');
        }
        self.write_bare(f)
    }

    fn write_bare(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(literal) => literal.fmt(f),
            Self::Field(field) => field.fmt(f),
            Self::Pattern(pattern) => pattern.fmt(f),
            Self::Negate(part) => {
                f.write_char('-')?;
                // The parser would read `-1` as a negative literal instead of a negation.
                let is_number = matches!(&**part, Self::Literal(literal) if literal.is_number());
                if is_number { write!(f, "({part})") } else { part.write(Precedence::Sign, f) }
            }
            Self::Arithmetic(operation, parts) => {
                parts[0].write(operation.precedence(), f)?;
                write!(f, " {operation} ")?;
                let tighter = if operation.precedence() == Precedence::Sum {
                    Precedence::Product
                } else {
                    Precedence::Sign
                };
                parts[1].write(tighter, f)
            }
            Self::Call(function, parts) => {
                write!(f, "{function}")?;
                write_list(parts, f)
            }
            Self::Compare(comparison, parts) => {
                parts[0].write(Precedence::Sum, f)?;
                write!(f, " {comparison} ")?;
                parts[1].write(Precedence::Sum, f)
            }
            Self::Not(part) if part.negatable().is_some() => part.write_middle(true, f),
            Self::Not(part) => {
                f.write_str("NOT ")?;
                part.write(Precedence::Not, f)
            }
            Self::And(parts) => write_joined(parts, " AND ", Precedence::Not, f),
            Self::Or(parts) => write_joined(parts, " OR ", Precedence::And, f),
            _ => self.write_middle(false, f),
        }
    }

    /// Writes a predicate whose keyword NOT may precede.
    fn write_middle(&self, is_negated: bool, f: &mut Formatter<'_>) -> fmt::Result {
        for subject in self.parts().take(1) {
            subject.write(Precedence::Sum, f)?;
        }
        let is = matches!(self, Self::IsNull(_) | Self::IsNan(_));
        let not = if is_negated { "NOT " } else { "" };
        write!(f, " {}{not}{}", if is { "IS " } else { "" }, self.negatable().unwrap_or_default())?;
        match self {
            Self::Between(parts) => {
                parts[1].write(Precedence::Sum, f)?;
                f.write_str(" AND ")?;
                parts[2].write(Precedence::Sum, f)
            }
            Self::In(_, set) | Self::BeginsWith(_, set) | Self::EndsWith(_, set) => {
                write_list(set, f)
            }
            Self::Like(_, pattern) => pattern.fmt(f),
            _ => Ok(()),
        }
    }
}

fn write_joined<F: Display>(
    parts: &[Expr<F>],
    joint: &str,
    least: Precedence,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    for (number, part) in parts.iter().enumerate() {
        f.write_str(if number == 0 { "" } else { joint })?;
        part.write(least, f)?;
    }
    Ok(())
}

fn write_list<F: Display>(parts: &[Expr<F>], f: &mut Formatter<'_>) -> fmt::Result {
    f.write_char('(')?;
    write_joined(parts, ", ", Precedence::Or, f)?;
    f.write_char(')')
}

impl<F: Display> Display for Expr<F> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write(Precedence::Or, f)
    }
}

impl Literal {
    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Self::Int(_) | Self::Uint(_) | Self::Float(_))
    }
}

impl From<Number> for Literal {
    fn from(number: Number) -> Self {
        Value::from(number).into()
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Bool(truth) => f.write_str(if *truth { "TRUE" } else { "FALSE" }),
            Self::Int(number) => number.fmt(f),
            Self::Uint(number) => number.fmt(f),
            // Debug format keeps a point or an exponent, so integral floats parse as floats again.
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Text(text) => write_quoted(text, f),
        }
    }
}

impl Display for Arithmetic {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        })
    }
}
