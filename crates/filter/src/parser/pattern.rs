//! Patterns, each with its part of what all may cost.

use super::Parser;
use crate::error::{Fault, FilterError};
use crate::lexer::Token;
use crate::pattern::{Pattern, PatternFault};

impl Parser<'_> {
    pub(super) fn pattern(&mut self) -> Result<Pattern, FilterError> {
        let Token::Text(text) = self.token.clone() else {
            return Err(self.unexpected("a pattern in quotes"));
        };
        let at = self.at;
        self.advance()?;
        self.compiled(&text, false, at)
    }

    /// Compiles the pattern that stood at the byte `at`, with what is left for patterns.
    pub(super) fn compiled(
        &mut self,
        text: &[u8],
        has_groups: bool,
        at: usize,
    ) -> Result<Pattern, FilterError> {
        let error = |what| FilterError::new(at, Fault::Pattern(what));
        let Ok(text) = str::from_utf8(text) else {
            return Err(error("it is not UTF-8; write bytes as r'\\xFF'".to_owned()));
        };
        self.compiled += 1;
        let (number, limits) = (self.compiled, self.limits);
        Pattern::within(text, has_groups, &mut self.patterns).map_err(|fault| match fault {
            PatternFault::Wrong(what) => error(what),
            PatternFault::Bytes => {
                let limit = limits.patterns_bytes;
                FilterError::new(at, Fault::PatternBytes { number, limit })
            }
            PatternFault::Work => {
                let limit = limits.patterns_work;
                FilterError::new(at, Fault::PatternWork { number, limit })
            }
        })
    }
}
