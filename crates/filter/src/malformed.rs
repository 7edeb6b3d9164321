//! Why a message could not be read.

use thiserror::Error;

/// What is wrong with a message, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("malformed message: {reason} at byte {offset}")]
pub struct Malformed {
    /// The byte of the message where reading stopped.
    pub offset: usize,
    /// What is wrong there.
    pub reason: MalformedReason,
}

/// What can be wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MalformedReason {
    /// It has 4 GiB or more.
    #[error("more than 4 GiB")]
    TooLong,
    /// A field of FIX or NVFIX has no separator between name and value.
    #[error("a field without a value")]
    NoValue,
    /// A field of FIX or NVFIX has a value, but no name.
    #[error("a field without a name")]
    NoName,
    /// A tag of FIX has something else than digits.
    #[error("a tag that is no number")]
    NotATag,
    /// More values within values than a reader follows.
    #[error("more than 64 levels")]
    TooDeep,
    /// The message ends within something.
    #[error("unexpected end")]
    Unfinished,
    /// Something stands where it must not.
    #[error("unexpected byte")]
    Unexpected,
    /// A literal of JSON is neither a number nor one of its three words.
    #[error("neither a number nor true, false or null")]
    NotALiteral,
    /// A backslash before something that cannot be escaped so.
    #[error("an unknown escape")]
    NotAnEscape,
    /// An end tag of XML that ends another element than the open one.
    #[error("an end tag that fits no start tag")]
    NotTheEnd,
    /// A reference of XML to an entity that is not among the five predefined ones.
    #[error("an unknown entity")]
    NotAnEntity,
    /// XML with a document type declaration, which readers refuse.
    #[error("a document type declaration")]
    DocumentType,
}

impl Malformed {
    pub(crate) fn new(offset: usize, reason: MalformedReason) -> Self {
        Self { offset, reason }
    }
}
