//! A filter: the condition that a message has to meet.

use crate::error::FilterError;
use crate::expr::Expr;
use crate::function::Function;
use crate::limits::FilterLimits;
use crate::parser::{self, Aggregates};
use crate::path::Path;
use crate::ternary::Semantics;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// A condition on one message. It prints as text that is read as the same filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    expr: Expr,
    semantics: Semantics,
}

impl Filter {
    /// Reads a filter, within the default limits.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Self::parse_with(text, &FilterLimits::DEFAULT)
    }

    /// Reads a filter, within these limits.
    pub fn parse_with(text: &str, limits: &FilterLimits) -> Result<Self, FilterError> {
        Ok(Self::from(parser::parse(text, limits, Aggregates::Forbidden)?))
    }

    /// The same; adds the steps of compiling its patterns to `work`, also if it is refused.
    pub fn parse_counted(
        text: &str,
        limits: &FilterLimits,
        work: &mut usize,
    ) -> Result<Self, FilterError> {
        Ok(Self::from(parser::parse_counted(text, limits, Aggregates::Forbidden, work)?))
    }

    /// The same filter, with AND and OR read like this.
    #[must_use]
    pub fn with_semantics(self, semantics: Semantics) -> Self {
        Self { semantics, ..self }
    }

    /// The same filter at a server of this name: that is what `INSTANCE_NAME()` yields.
    #[must_use]
    pub fn with_instance_name(mut self, instance: &str) -> Self {
        self.expr.bind_instance_name(instance);
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
    pub fn is_pure(&self) -> bool {
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
