//! Values in a configuration file: each type parses and checks its own text.

use crate::config::address::{PORT, WEBSOCKET_PORT, parse_address};
use lanecast_base::{Size, parse_duration};
use lanecast_filter::message_type::MessageType;
use lanecast_filter::path::Path as FieldPath;
use serde::Deserialize;
use std::net::SocketAddr;
use std::time::Duration;

/// No upper bound, for settings without one of their own.
pub(crate) const ANY: usize = u32::MAX as usize;

/// A number from `LEAST` to `MOST`.
#[derive(Debug, Deserialize)]
#[serde(try_from = "i64")]
pub(crate) struct Count<const LEAST: usize, const MOST: usize>(pub(crate) usize);

impl<const LEAST: usize, const MOST: usize> TryFrom<i64> for Count<LEAST, MOST> {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        let count = usize::try_from(number).ok().filter(|it| (LEAST..=MOST).contains(it));
        count.map(Self).ok_or_else(|| format!("{number} is not from {LEAST} to {MOST}"))
    }
}

/// A size such as `64KiB`, of at least `LEAST` bytes.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Bytes<const LEAST: usize>(pub(crate) usize);

impl<const LEAST: usize> TryFrom<String> for Bytes<LEAST> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let size: Size = text.parse().map_err(|error| format!("{error}"))?;
        let bytes = usize::try_from(size.0).ok().filter(|it| (LEAST..=ANY).contains(it));
        bytes.map(Self).ok_or_else(|| format!("{text} is not from {LEAST} to {ANY} bytes"))
    }
}

/// Defines a setting that `$parse` reads from a text.
macro_rules! text {
    ($(#[$about:meta])* $name:ident($of:ty), $parse:expr) => {
        $(#[$about])*
        #[derive(Debug, Deserialize)]
        #[serde(try_from = "String")]
        pub(crate) struct $name(pub(crate) $of);

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                $parse(&text).map(Self)
            }
        }
    };
}

text!(
    /// An address to listen on.
    Address(SocketAddr),
    |text: &str| parse_address(text, PORT)
);
text!(
    /// An address to listen on for WebSockets; the empty text turns them off.
    WebSocketAddress(Option<SocketAddr>),
    |text: &str| match text {
        "" => Ok(None),
        text => parse_address(text, WEBSOCKET_PORT).map(Some),
    }
);
text!(
    /// A duration such as `10s`.
    Span(Duration),
    |text: &str| parse_duration(text).map_err(|error| error.to_string())
);
text!(
    /// A message type such as `json`.
    MessageTypeName(MessageType),
    |text: &str| text.parse::<MessageType>().map_err(|error| error.to_string())
);
text!(
    /// The path of a field in messages.
    FieldName(FieldPath),
    |text: &str| text.parse::<FieldPath>().map_err(|error| format!("{text:?} is no field: {error}"))
);
