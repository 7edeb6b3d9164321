//! Errors of malformed messages.

use thiserror::Error;

/// A malformed message: reason and position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("malformed message: {reason} at byte {offset}")]
pub struct Malformed {
    /// Byte offset of the error.
    pub offset: usize,
    /// Reason.
    pub reason: MalformedReason,
}

/// Reasons why a message is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MalformedReason {
    /// The message has 4 GiB or more.
    #[error("more than 4 GiB")]
    TooLong,
    /// A FIX or NVFIX field without a separator between name and value.
    #[error("a field without a value")]
    NoValue,
    /// A FIX or NVFIX field with a value, but no name.
    #[error("a field without a name")]
    NoName,
    /// A FIX tag with a byte other than a digit.
    #[error("a tag that is not a number")]
    NotATag,
    /// Nesting beyond the limit of readers.
    #[error("more than 64 levels")]
    TooDeep,
    /// The message ends inside a value.
    #[error("unexpected end")]
    Unfinished,
    /// An unexpected byte.
    #[error("unexpected byte")]
    Unexpected,
    /// A JSON literal that is neither a number nor `true`, `false` or `null`.
    #[error("neither a number nor true, false or null")]
    NotALiteral,
    /// An unknown JSON escape.
    #[error("an unknown escape")]
    NotAnEscape,
    /// An XML end tag that does not match the open element.
    #[error("an end tag that does not match its start tag")]
    NotTheEnd,
    /// An XML entity other than the five predefined ones.
    #[error("an unknown entity")]
    NotAnEntity,
    /// An XML document type declaration, which readers refuse.
    #[error("a document type declaration")]
    DocumentType,
}

impl Malformed {
    pub(crate) fn new(offset: usize, reason: MalformedReason) -> Self {
        Self { offset, reason }
    }
}
