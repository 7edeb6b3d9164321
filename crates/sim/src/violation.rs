//! What must not happen, and did.

use std::fmt;

/// A broken promise, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// Whether every promise was kept.
pub type Verdict<T = ()> = Result<T, Violation>;

/// Complains unless a promise was kept.
#[macro_export]
macro_rules! ensure {
    ($kept:expr, $($words:tt)+) => {
        if !$kept {
            return Err($crate::violation::Violation(format!($($words)+)));
        }
    };
}
