//! A parsed filter: the condition that a message has to meet.

use crate::error::FilterError;
use crate::expr::Expr;
use crate::function::Function;
use crate::limits::FilterLimits;
use crate::parser::{self, Aggregates};
use crate::path::Path;
use crate::ternary::Semantics;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// A condition on one message. Its printed text parses to the same filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    expr: Expr,
    semantics: Semantics,
}

impl Filter {
    /// Parses a filter within the default limits.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Self::parse_with(text, &FilterLimits::DEFAULT)
    }

    /// Parses a filter within `limits`.
    pub fn parse_with(text: &str, limits: &FilterLimits) -> Result<Self, FilterError> {
        Ok(Self::from(parser::parse(text, limits, Aggregates::Forbidden)?))
    }

    /// Parses a filter within `limits` and adds the steps of compiling its patterns to `work`, also
    /// if the filter is refused.
    pub fn parse_counted(
        text: &str,
        limits: &FilterLimits,
        work: &mut usize,
    ) -> Result<Self, FilterError> {
        Ok(Self::from(parser::parse_counted(text, limits, Aggregates::Forbidden, work)?))
    }

    /// This filter with AND and OR evaluated under `semantics`.
    #[must_use]
    pub fn with_semantics(self, semantics: Semantics) -> Self {
        Self { semantics, ..self }
    }

    /// This filter with `INSTANCE_NAME()` replaced by the server name `instance`.
    #[must_use]
    pub fn with_instance_name(mut self, instance: &str) -> Self {
        self.expr.bind_instance_name(instance);
        self
    }

    /// Semantics of AND and OR.
    pub fn semantics(&self) -> Semantics {
        self.semantics
    }

    /// The condition.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// Paths of all fields in the condition, one for each occurrence.
    pub fn paths(&self) -> Vec<&Path> {
        self.expr.fields()
    }

    /// Memory of the compiled patterns, including their largest match caches.
    pub fn pattern_bytes(&self) -> usize {
        let mut bytes = 0;
        self.expr.visit(&mut |expr| {
            if let Expr::Pattern(pattern) | Expr::Like(_, pattern) = expr {
                bytes += pattern.bytes();
            }
        });
        bytes
    }

    /// Whether the result depends on the message and its environment only, not on the time.
    pub fn is_deterministic(&self) -> bool {
        self.calls_only(Function::is_deterministic)
    }

    /// Whether the result depends on the bytes of the message only: neither the time nor the
    /// publisher matters. A server can then evaluate the previous version of a record to find out
    /// whether it matched.
    pub fn is_pure(&self) -> bool {
        self.calls_only(|function| function.is_deterministic() && function != Function::ClientName)
    }

    fn calls_only(&self, is_one: impl Fn(Function) -> bool) -> bool {
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
