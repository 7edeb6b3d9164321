//! What a message is written in.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use thiserror::Error;

/// The start-of-header byte, which ends a field of FIX.
pub const SOH: u8 = 1;

/// A way to write messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageType {
    /// Tags of digits: `35=D`, `55=IBM`.
    Fix,
    /// The same with names: `MsgType=D`, `Symbol=IBM`.
    Nvfix,
    /// JSON texts.
    Json,
    /// XML documents without a document type declaration.
    Xml,
    /// Bytes without fields.
    Binary,
}

impl MessageType {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Fix, Self::Nvfix, Self::Json, Self::Xml, Self::Binary];

    /// What configurations and commands call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fix => "fix",
            Self::Nvfix => "nvfix",
            Self::Json => "json",
            Self::Xml => "xml",
            Self::Binary => "binary",
        }
    }
}

impl Display for MessageType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no kind's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no such kind of message; write fix, nvfix, json, xml or binary")]
pub struct ParseMessageTypeError;

impl FromStr for MessageType {
    type Err = ParseMessageTypeError;

    fn from_str(text: &str) -> Result<Self, ParseMessageTypeError> {
        let found = Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(text));
        found.ok_or(ParseMessageTypeError)
    }
}

/// A kind, and the bytes between names, values and fields where it has such.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    message_type: MessageType,
    field: u8,
    pair: u8,
}

impl Format {
    /// `kind` with its usual separators: SOH behind fields, `=` between a name and its value.
    pub fn new(message_type: MessageType) -> Self {
        Self { message_type, field: SOH, pair: b'=' }
    }

    /// The same with `field` behind fields and `pair` between a name and its value.
    ///
    /// JSON, XML and binary messages have none, and take no notice.
    ///
    /// # Errors
    ///
    /// If names could not be told from separators.
    pub fn with_separators(self, field: u8, pair: u8) -> Result<Self, SeparatorError> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric();
        match (field, pair) {
            _ if field == pair => Err(SeparatorError::Equal),
            _ if is_name(field) || is_name(pair) => Err(SeparatorError::PartOfNames),
            _ => Ok(Self { field, pair, ..self }),
        }
    }

    /// What messages are written in.
    pub fn message_type(self) -> MessageType {
        self.message_type
    }

    /// The byte behind each field.
    pub fn field_separator(self) -> u8 {
        self.field
    }

    /// The byte between a name and its value.
    pub fn pair_separator(self) -> u8 {
        self.pair
    }
}

impl From<MessageType> for Format {
    fn from(message_type: MessageType) -> Self {
        Self::new(message_type)
    }
}

/// Why two bytes cannot separate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SeparatorError {
    /// Both are the same byte.
    #[error("fields and pairs have the same separator: choose two different bytes")]
    Equal,
    /// One of them is a letter or a digit.
    #[error("letters and digits belong to names: choose another separator")]
    PartOfNames,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        for kind in MessageType::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(kind.name().to_uppercase().parse(), Ok(kind));
        }
        let error = "bson".parse::<MessageType>().expect_err("unknown");
        assert!(error.to_string().contains("nvfix"), "{error}");
    }

    #[test]
    fn separators_are_told_from_names() {
        let fix = Format::new(MessageType::Fix);
        assert_eq!((fix.field_separator(), fix.pair_separator()), (1, b'='));
        let printed = fix.with_separators(b';', b'=').expect("as the examples do");
        assert_eq!((printed.message_type(), printed.field_separator()), (MessageType::Fix, b';'));
        assert_eq!(fix.with_separators(b'=', b'='), Err(SeparatorError::Equal));
        assert_eq!(fix.with_separators(b'7', b'='), Err(SeparatorError::PartOfNames));
        assert_eq!(fix.with_separators(b';', b'x'), Err(SeparatorError::PartOfNames));
    }
}
