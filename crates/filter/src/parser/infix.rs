//! Infix operators and their precedence.

use crate::expr::{Arithmetic, Precedence};
use crate::lexer::Token;
use crate::value::Comparison;

/// An operator after an operand.
#[derive(Clone, Copy)]
pub(super) enum Infix {
    Or,
    And,
    Arithmetic(Arithmetic),
    Compare(Comparison),
    /// IN, BETWEEN, LIKE, BEGINS, ENDS, IS, or NOT before one of them.
    Predicate,
}

impl Infix {
    pub(super) fn precedence(self) -> Precedence {
        match self {
            Self::Or => Precedence::Or,
            Self::And => Precedence::And,
            Self::Compare(_) | Self::Predicate => Precedence::Compare,
            Self::Arithmetic(operation) => operation.precedence(),
        }
    }

    /// The operator that `token` starts, if it is one.
    pub(super) fn of(token: &Token<'_>) -> Option<Self> {
        Some(match *token {
            Token::Symbol("+") => Self::Arithmetic(Arithmetic::Add),
            Token::Symbol("-") => Self::Arithmetic(Arithmetic::Subtract),
            Token::Symbol("*") => Self::Arithmetic(Arithmetic::Multiply),
            Token::Symbol("/") => Self::Arithmetic(Arithmetic::Divide),
            Token::Symbol("%") => Self::Arithmetic(Arithmetic::Remainder),
            Token::Symbol("=" | "==") => Self::Compare(Comparison::Equal),
            Token::Symbol("<>" | "!=") => Self::Compare(Comparison::NotEqual),
            Token::Symbol("<") => Self::Compare(Comparison::Less),
            Token::Symbol("<=") => Self::Compare(Comparison::LessOrEqual),
            Token::Symbol(">") => Self::Compare(Comparison::Greater),
            Token::Symbol(">=") => Self::Compare(Comparison::GreaterOrEqual),
            Token::Word(word) => match word.to_ascii_uppercase().as_str() {
                "OR" => Self::Or,
                "AND" => Self::And,
                "MOD" => Self::Arithmetic(Arithmetic::Remainder),
                "IN" | "BETWEEN" | "LIKE" | "BEGINS" | "ENDS" | "IS" | "NOT" => Self::Predicate,
                _ => return None,
            },
            _ => return None,
        })
    }
}
