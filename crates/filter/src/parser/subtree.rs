//! Expressions under construction, with their heights.

use crate::expr::Expr;

/// An expression and its height. The height is limited, so recursive walks cannot overflow the
/// stack.
pub(super) struct Subtree {
    pub(super) expr: Expr,
    pub(super) height: usize,
}

impl From<Expr> for Subtree {
    fn from(expr: Expr) -> Self {
        Self { expr, height: 1 }
    }
}

/// Operand subtrees, in the container that their expression takes.
pub(super) trait Operands {
    type Exprs;
    fn split(self) -> (usize, Self::Exprs);
}

impl<const N: usize> Operands for [Subtree; N] {
    type Exprs = [Expr; N];

    fn split(self) -> (usize, [Expr; N]) {
        let height = self.iter().map(|part| part.height).max().unwrap_or(0);
        (height, self.map(|part| part.expr))
    }
}

impl Operands for Vec<Subtree> {
    type Exprs = Vec<Expr>;

    fn split(self) -> (usize, Vec<Expr>) {
        let height = self.iter().map(|part| part.height).max().unwrap_or(0);
        (height, self.into_iter().map(|part| part.expr).collect())
    }
}
