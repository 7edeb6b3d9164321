//! Limits on the cost of parsing one filter.

use crate::pattern::PatternBudget;

/// Limits on the cost of parsing a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterLimits {
    /// Bytes of the text.
    pub length_bytes: usize,
    /// Nesting levels of expressions.
    pub depth: usize,
    /// Different paths in one condition or expression: all filters of a topic share
    /// [`SLOTS_MAX`](crate::fields::SLOTS_MAX) of them.
    pub fields: usize,
    /// Bytes of each compiled regular expression.
    pub pattern_bytes: usize,
    /// Bytes of all compiled patterns and their match caches: at least 64 KiB for each pattern that
    /// is more than a literal.
    pub patterns_bytes: usize,
    /// Steps of compiling all patterns: about one for each automaton state.
    pub patterns_work: usize,
}

impl FilterLimits {
    /// 64 KiB of text, 128 levels, 128 fields, 1 MiB for each pattern, 16 MiB and 200,000 steps for
    /// all.
    pub const DEFAULT: Self = Self {
        length_bytes: 64 * 1024,
        depth: 128,
        fields: 128,
        pattern_bytes: 1024 * 1024,
        patterns_bytes: 16 * 1024 * 1024,
        patterns_work: 200_000,
    };

    /// Budget of all patterns in one text.
    pub(crate) fn patterns(&self) -> PatternBudget {
        let Self { pattern_bytes: each, patterns_bytes: bytes, patterns_work: work, .. } = *self;
        PatternBudget { each, bytes, work }
    }
}

impl Default for FilterLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
