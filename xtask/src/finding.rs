//! One thing that is not as the house wants it.

#[cfg(test)]
use crate::source::Source;
use std::fmt;

/// Place, fault and remedy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    what: String,
}

impl Finding {
    /// A finding in line `line` (counted from 1) of `path` (relative to the workspace).
    pub(crate) fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// Number of findings of `check` in `text`.
#[cfg(test)]
pub(crate) fn count(check: fn(&Source, &mut Vec<Finding>), text: &str) -> usize {
    let mut findings = Vec::new();
    check(&Source::new("a.rs", text.into()), &mut findings);
    findings.len()
}
