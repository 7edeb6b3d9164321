//! Violations of the protocols' guarantees.

use std::fmt;

/// A violated guarantee, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// Result of a check.
pub type Verdict<T = ()> = Result<T, Violation>;

/// Returns a violation unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($kept:expr, $($words:tt)+) => {
        if !$kept {
            return Err($crate::violation::Violation(format!($($words)+)));
        }
    };
}
