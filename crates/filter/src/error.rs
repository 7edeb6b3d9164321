//! Why a text is no filter: where, what was wrong, and what to write instead.

use std::fmt::{self, Display, Formatter, Write};
use thiserror::Error;

/// So many characters are shown before a place in a long line.
const BEFORE: usize = 60;
/// And so many from there on.
const BEHIND: usize = 40;

/// Why a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct FilterError {
    /// The byte where reading stopped.
    pub offset: usize,
    /// What is wrong there.
    pub kind: FilterErrorKind,
    /// What to write instead, where that can be guessed.
    pub hint: Option<String>,
}

/// What can be wrong with the text of an expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FilterErrorKind {
    /// Something else had to stand here.
    #[error("expected {wanted}, found {found}")]
    Unexpected {
        /// What may stand here.
        wanted: &'static str,
        /// What does stand here.
        found: String,
    },
    /// This belongs to no word or sign of the language.
    #[error("`{0}` means nothing here")]
    Unknown(char),
    /// A text that does not end.
    #[error("the closing quote is missing")]
    OpenText,
    /// A backslash before something that it gives no meaning.
    #[error("`\\{0}` is no escape")]
    Escape(char),
    /// A number that is written wrongly or is too large.
    #[error("`{0}` is no number")]
    Number(String),
    /// A path that is written wrongly.
    #[error("{0}")]
    Path(&'static str),
    /// A regular expression that is wrong, too large, or asks for what cannot be linear.
    #[error("bad pattern: {0}")]
    Pattern(String),
    /// The patterns up to this one take too much memory.
    #[error(
        "pattern {number} of this filter goes beyond the budget: all together may take {limit} \
         bytes, compiled and when matched; use fewer or simpler ones"
    )]
    PatternBytes {
        /// Which pattern it is, counted from 1.
        number: usize,
        /// Bytes allowed for all.
        limit: usize,
    },
    /// The patterns up to this one take too long to compile.
    #[error(
        "pattern {number} of this filter goes beyond the budget: all together may take {limit} \
         steps to compile; use fewer or simpler ones"
    )]
    PatternWork {
        /// Which pattern it is, counted from 1.
        number: usize,
        /// Steps allowed for all.
        limit: usize,
    },
    /// A function that does not exist.
    #[error("there is no function {0}")]
    Function(String),
    /// A function that is not called as it wants.
    #[error("{function} takes {wanted}")]
    Arguments {
        /// The function.
        function: &'static str,
        /// What it takes.
        wanted: String,
    },
    /// A function that looks at many messages, outside of a view.
    #[error("{0} is for views: a filter looks at one message")]
    Aggregate(&'static str),
    /// A function that looks at many messages, within another.
    #[error("{0} stands within another aggregate function: each looks at messages by itself")]
    Nested(&'static str),
    /// The text is longer than allowed.
    #[error("the text has {length} bytes, and at most {limit} are allowed")]
    TooLong {
        /// Bytes of the text.
        length: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// Expressions within expressions within expressions.
    #[error("more than {0} levels of nesting")]
    TooDeep(usize),
}

impl FilterError {
    pub(crate) fn new(offset: usize, kind: FilterErrorKind) -> Self {
        Self { offset, kind, hint: None }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The message below the line of `text` that it is about, with a mark under the place. Of a
    /// long line there is only what is around that.
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
