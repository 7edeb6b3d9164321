//! Message types and the separators of their fields.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use thiserror::Error;

/// Start of header, the usual field separator of FIX.
pub const SOH: u8 = 1;

/// The encoding of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageType {
    /// Tag-value pairs with numeric tags: `35=D`, `55=IBM`.
    Fix,
    /// Tag-value pairs with names: `MsgType=D`, `Symbol=IBM`.
    Nvfix,
    /// JSON.
    Json,
    /// XML without a document type declaration.
    Xml,
    /// Opaque bytes without fields.
    Binary,
}

impl MessageType {
    /// All message types.
    pub const ALL: [Self; 5] = [Self::Fix, Self::Nvfix, Self::Json, Self::Xml, Self::Binary];

    /// Name in configurations and commands.
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

/// The name of a message type is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no such message type; write fix, nvfix, json, xml or binary")]
pub struct ParseMessageTypeError;

impl FromStr for MessageType {
    type Err = ParseMessageTypeError;

    fn from_str(text: &str) -> Result<Self, ParseMessageTypeError> {
        let found = Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(text));
        found.ok_or(ParseMessageTypeError)
    }
}

/// A message type and, for FIX and NVFIX, its separators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    message_type: MessageType,
    field: u8,
    pair: u8,
}

impl Format {
    /// `message_type` with the usual separators: SOH after fields, `=` between tag and value.
    pub fn new(message_type: MessageType) -> Self {
        Self { message_type, field: SOH, pair: b'=' }
    }

    /// This format with `field` after fields and `pair` between tag and value. JSON, XML and binary
    /// messages ignore them.
    ///
    /// # Errors
    ///
    /// If the separators are equal, or letters or digits, which names may contain.
    pub fn with_separators(self, field: u8, pair: u8) -> Result<Self, SeparatorError> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric();
        match (field, pair) {
            _ if field == pair => Err(SeparatorError::Equal),
            _ if is_name(field) || is_name(pair) => Err(SeparatorError::PartOfNames),
            _ => Ok(Self { field, pair, ..self }),
        }
    }

    /// The message type.
    pub fn message_type(self) -> MessageType {
        self.message_type
    }

    /// Separator after each field.
    pub fn field_separator(self) -> u8 {
        self.field
    }

    /// Separator between a tag and its value.
    pub fn pair_separator(self) -> u8 {
        self.pair
    }
}

impl From<MessageType> for Format {
    fn from(message_type: MessageType) -> Self {
        Self::new(message_type)
    }
}

/// Two bytes that cannot separate fields.
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
