//! Parse errors of filters: position, reason and hint.

use std::fmt::{self, Display, Formatter, Write};
use thiserror::Error;

/// Characters shown before the position in a long line.
const BEFORE: usize = 60;
/// Characters shown after the position.
const BEHIND: usize = 40;

/// A parse error of a filter or an expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct FilterError {
    /// Byte offset of the error.
    pub offset: usize,
    /// Reason.
    pub kind: FilterErrorKind,
    /// Suggested correction, if one is known.
    pub hint: Option<String>,
}

/// Reasons of parse errors.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FilterErrorKind {
    /// Another token was expected.
    #[error("expected {wanted}, found {found}")]
    Unexpected {
        /// Tokens that are allowed here.
        wanted: &'static str,
        /// Token that was found.
        found: String,
    },
    /// A character that starts no token.
    #[error("unexpected character `{0}`")]
    Unknown(char),
    /// A text literal without its closing quote.
    #[error("the closing quote is missing")]
    OpenText,
    /// An unknown escape sequence.
    #[error("`\\{0}` is not an escape sequence")]
    Escape(char),
    /// A malformed number, or one out of range.
    #[error("`{0}` is not a number")]
    Number(String),
    /// A malformed path.
    #[error("{0}")]
    Path(&'static str),
    /// A regular expression that is malformed, too large, or not matchable in linear time.
    #[error("bad pattern: {0}")]
    Pattern(String),
    /// The patterns up to this one exceed the memory budget.
    #[error(
        "pattern {number} of this filter goes beyond the budget: all together may take {limit} \
         bytes, compiled and when matched; use fewer or simpler ones"
    )]
    PatternBytes {
        /// Number of the pattern, counted from 1.
        number: usize,
        /// Bytes allowed for all patterns.
        limit: usize,
    },
    /// The patterns up to this one exceed the compile budget.
    #[error(
        "pattern {number} of this filter goes beyond the budget: all together may take {limit} \
         steps to compile; use fewer or simpler ones"
    )]
    PatternWork {
        /// Number of the pattern, counted from 1.
        number: usize,
        /// Steps allowed for all patterns.
        limit: usize,
    },
    /// An unknown function.
    #[error("unknown function {0}")]
    Function(String),
    /// A call with wrong arguments.
    #[error("{function} takes {wanted}")]
    Arguments {
        /// The function.
        function: &'static str,
        /// Arguments that it takes.
        wanted: String,
    },
    /// An aggregate function outside of a view.
    #[error("{0} aggregates messages and is allowed in views only")]
    Aggregate(&'static str),
    /// An aggregate function inside another.
    #[error("{0} is nested in another aggregate function, which is not allowed")]
    Nested(&'static str),
    /// The text is longer than allowed.
    #[error("the text has {length} bytes, and at most {limit} are allowed")]
    TooLong {
        /// Bytes of the text.
        length: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// Expressions are nested too deeply.
    #[error("more than {0} levels of nesting")]
    TooDeep(usize),
    /// More different fields than allowed.
    #[error("more than {0} different fields")]
    TooManyFields(usize),
}

impl FilterError {
    pub(crate) fn new(offset: usize, kind: FilterErrorKind) -> Self {
        Self { offset, kind, hint: None }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The message below the line of `text` that contains the error, with a caret at its column. A
    /// long line is cut to the surroundings of the error.
    pub fn show(&self, text: &str) -> String {
        let at = (0..=self.offset.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
        let (before, after) = text.split_at(at.unwrap_or(0));
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let (before, after) = (&before[start..], after.lines().next().unwrap_or(""));
        let is_cut = before.chars().count() > BEFORE;
        let mut line = if is_cut { "...".to_owned() } else { String::new() };
        line.extend(before.chars().skip(before.chars().count().saturating_sub(BEFORE)));
        let column = line.chars().count();
        line.extend(after.chars().take(BEHIND));
        line.push_str(if after.chars().count() > BEHIND { "..." } else { "" });
        let line = line.replace(char::is_control, " ");
        let place = if is_cut { format!("at byte {}: ", self.offset) } else { String::new() };
        let mut shown = String::new();
        // Writing to a string cannot fail.
        let _ = write!(shown, "{line}\n{:column$}^ {place}{}", "", self.kind);
        if let Some(hint) = &self.hint {
            let _ = write!(shown, "\n{:column$}  {hint}", "");
        }
        shown
    }
}

impl Display for FilterError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.kind)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}
