//! A filter: the condition that a message has to meet.

use crate::error::FilterError;
use crate::expr::{Expr, Literal};
use crate::function::Function;
use crate::parser::{self, Aggregates};
use crate::path::Path;
use crate::pattern::PatternBudget;
use crate::truth::Semantics;
use crate::value::Value;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// What a filter may cost whoever reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the text.
    pub length_bytes: usize,
    /// Expressions within expressions.
    pub depth: usize,
    /// Bytes of each compiled regular expression.
    pub pattern_bytes: usize,
    /// Bytes of all of them together, with what matching may come to take: at least 64 KiB for
    /// each that is more than a text.
    pub patterns_bytes: usize,
    /// Steps of compiling them all: about one for each state of their automata.
    pub patterns_work: usize,
}

impl Limits {
    /// 64 KiB of text, 128 levels, 1 MiB for each pattern, 16 MiB and 200,000 steps for all.
    pub const DEFAULT: Self = Self {
        length_bytes: 64 * 1024,
        depth: 128,
        pattern_bytes: 1024 * 1024,
        patterns_bytes: 16 * 1024 * 1024,
        patterns_work: 200_000,
    };

    /// What the patterns of one text may cost.
    pub(crate) fn patterns(&self) -> PatternBudget {
        let Self { pattern_bytes: each, patterns_bytes: bytes, patterns_work: work, .. } = *self;
        PatternBudget { each, bytes, work }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A condition on one message. It prints as text that is read as the same filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    expr: Expr,
    semantics: Semantics,
}

impl Filter {
    /// Reads a filter, within the default limits.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Self::parse_with(text, &Limits::DEFAULT)
    }

    /// Reads a filter, within these limits.
    pub fn parse_with(text: &str, limits: &Limits) -> Result<Self, FilterError> {
        Ok(Self::from(parser::parse(text, limits, Aggregates::Refused)?))
    }

    /// The same; adds the steps of compiling its patterns to `work`, also if it is refused.
    pub fn parse_counted(
        text: &str,
        limits: &Limits,
        work: &mut usize,
    ) -> Result<Self, FilterError> {
        Ok(Self::from(parser::parse_counted(text, limits, Aggregates::Refused, work)?))
    }

    /// The same filter, with AND and OR read like this.
    #[must_use]
    pub fn with_semantics(self, semantics: Semantics) -> Self {
        Self { semantics, ..self }
    }

    /// The same filter at a server of this name: that is what `INSTANCE_NAME()` yields.
    #[must_use]
    pub fn at(mut self, instance: &str) -> Self {
        self.expr.settle(instance);
        self
    }

    /// How it reads AND and OR.
    pub fn semantics(&self) -> Semantics {
        self.semantics
    }

    /// The condition.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// The fields that it asks for, each as often as it does.
    pub fn paths(&self) -> Vec<&Path> {
        self.expr.fields()
    }

    /// The memory that its patterns take, and that matching them may come to take.
    pub fn pattern_bytes(&self) -> usize {
        let mut bytes = 0;
        self.expr.visit(&mut |expr| {
            if let Expr::Pattern(pattern) | Expr::Like(_, pattern) = expr {
                bytes += pattern.bytes();
            }
        });
        bytes
    }

    /// Whether it says the same of the same message at any time.
    pub fn is_deterministic(&self) -> bool {
        self.calls_just(Function::is_deterministic)
    }

    /// Whether it says the same of the same bytes at any time, whoever publishes them: then it can
    /// be told of a record that has changed whether it met the filter before.
    pub fn looks_back(&self) -> bool {
        self.calls_just(|function| function.is_deterministic() && function != Function::ClientName)
    }

    fn calls_just(&self, is_one: impl Fn(Function) -> bool) -> bool {
        let mut are_all = true;
        self.expr.visit(&mut |expr| {
            if let Expr::Call(function, _) = expr {
                are_all &= is_one(*function);
            }
        });
        are_all
    }
}

impl Expr {
    /// Reads an expression as views have them, where aggregate functions may stand.
    pub fn parse(text: &str, limits: &Limits) -> Result<Self, FilterError> {
        parser::parse(text, limits, Aggregates::Allowed)
    }
}

impl<F> Expr<F> {
    /// Puts the name of a server where it is asked for.
    fn settle(&mut self, instance: &str) {
        match self {
            Self::Call(Function::InstanceName, _) => {
                *self = Self::Literal(Literal::from(Value::Text(instance.as_bytes())));
            }
            _ => self.parts_mut().for_each(|part| part.settle(instance)),
        }
    }

    /// The fields that it asks for, each as often as it does.
    pub fn fields(&self) -> Vec<&F> {
        let mut fields = Vec::new();
        self.visit(&mut |expr| {
            if let Expr::Field(field) = expr {
                fields.push(field);
            }
        });
        fields
    }
}

impl From<Expr> for Filter {
    fn from(expr: Expr) -> Self {
        Self { expr, semantics: Semantics::default() }
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        Self::parse(text)
    }
}

impl Display for Filter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}
