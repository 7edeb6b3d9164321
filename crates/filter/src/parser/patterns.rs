//! The regular expressions of one filter, compiled within one common budget.

use crate::error::{FilterError, FilterErrorKind};
use crate::limits::FilterLimits;
use crate::pattern::{Pattern, PatternBudget, PatternError};

/// Compiles the patterns of one text and charges their budget.
#[derive(Debug)]
pub(super) struct PatternCompiler<'a> {
    limits: &'a FilterLimits,
    budget: PatternBudget,
    /// Patterns compiled so far.
    count: usize,
}

impl<'a> PatternCompiler<'a> {
    pub(super) fn new(limits: &'a FilterLimits) -> Self {
        Self { limits, budget: limits.patterns(), count: 0 }
    }

    /// Compile steps used so far.
    pub(super) fn work(&self) -> usize {
        self.limits.patterns_work.saturating_sub(self.budget.work)
    }

    /// Compiles the pattern written at byte `at`, with capture groups if `has_groups`.
    pub(super) fn compile(
        &mut self,
        text: &[u8],
        has_groups: bool,
        at: usize,
    ) -> Result<Pattern, FilterError> {
        let error = |kind| FilterError::new(at, kind);
        let Ok(text) = str::from_utf8(text) else {
            let reason = "it is not UTF-8; write bytes as r'\\xFF'".to_owned();
            return Err(error(FilterErrorKind::Pattern(reason)));
        };
        self.count += 1;
        let (number, limits) = (self.count, self.limits);
        Pattern::compile(text, has_groups, &mut self.budget).map_err(|reason| match reason {
            PatternError::Invalid(reason) => error(FilterErrorKind::Pattern(reason)),
            PatternError::MemoryBudget => {
                error(FilterErrorKind::PatternBytes { number, limit: limits.patterns_bytes })
            }
            PatternError::WorkBudget => {
                error(FilterErrorKind::PatternWork { number, limit: limits.patterns_work })
            }
        })
    }
}
