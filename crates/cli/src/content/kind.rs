//! Message types, and their form on a command line and on a screen.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use lanecast_filter::message_type::{MessageType, SOH};

/// The type of messages.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct KindArgs {
    /// Message type
    #[arg(long = "type", value_name = "TYPE", default_value = "json")]
    #[arg(value_parser = PossibleValuesParser::new(MessageType::ALL.map(MessageType::name))
        .try_map(|name| name.parse::<MessageType>()))]
    pub(crate) kind: MessageType,

    /// Character that stands for the byte 1 that ends the fields of fix and nvfix
    #[arg(long, value_name = "CHARACTER", default_value = "|", value_parser = parse_separator)]
    separator: u8,
}

impl KindArgs {
    /// A message as it is meant, of one that was typed.
    pub(crate) fn meant(&self, message: &mut [u8]) {
        self.replace(message, self.separator, SOH);
    }

    /// A message as it can be typed, of one as it is.
    pub(crate) fn typed(&self, message: &mut [u8]) {
        self.replace(message, SOH, self.separator);
    }

    fn replace(&self, message: &mut [u8], old: u8, new: u8) {
        if matches!(self.kind, MessageType::Fix | MessageType::Nvfix) {
            message.iter_mut().filter(|byte| **byte == old).for_each(|byte| *byte = new);
        }
    }
}

fn parse_separator(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] if byte.is_ascii_graphic() && *byte != b'=' => Ok(*byte),
        _ => Err("one printable ASCII character other than `=`, such as | or ;".to_owned()),
    }
}

#[cfg(test)]
impl KindArgs {
    /// Messages in JSON.
    pub(crate) fn json() -> Self {
        Self { kind: MessageType::Json, separator: b'|' }
    }
}
