//! Readers: extract the wanted fields of a message into a row.

pub(crate) mod json;
mod tag_value;
mod xml;

use crate::fields::FieldSet;
use crate::malformed::{Malformed, MalformedReason};
use crate::message_type::MessageType;
use crate::row::Row;
use json::JsonReader;
use tag_value::TagValueReader;
use xml::XmlReader;

/// Reads messages of one format and extracts the fields of the set it was built from.
///
/// Reading stops once all fields are found, so malformed bytes after them go unnoticed.
/// `docs/protocol/messages.md` specifies the accepted syntax of each message type.
#[derive(Clone, Debug)]
pub struct Reader {
    slots: usize,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    TagValue(TagValueReader),
    Json(JsonReader),
    Xml(XmlReader),
    /// No fields.
    Binary,
}

impl Reader {
    /// A reader for `fields`.
    pub fn new(fields: &FieldSet) -> Self {
        let body = match fields.format().message_type() {
            MessageType::Fix | MessageType::Nvfix => Body::TagValue(TagValueReader::new(fields)),
            MessageType::Json => Body::Json(JsonReader::new(fields)),
            MessageType::Xml => Body::Xml(XmlReader::new(fields)),
            MessageType::Binary => Body::Binary,
        };
        Self { slots: fields.len(), body }
    }

    /// Reads `bytes` into `row`, replacing its previous contents.
    ///
    /// Allocation-free once row and reader have seen messages of this size and depth.
    ///
    /// # Errors
    ///
    /// If the message is malformed before all fields are found. The row is empty then.
    #[inline]
    pub fn read(&mut self, bytes: &[u8], row: &mut Row) -> Result<(), Malformed> {
        // Values of the previous message point into its bytes, so the row is emptied first.
        row.reset(self.slots);
        let result = match &mut self.body {
            // Rows store 32-bit offsets.
            _ if bytes.len() >= u32::MAX as usize => {
                Err(Malformed::new(0, MalformedReason::TooLong))
            }
            Body::TagValue(reader) => reader.read(bytes, row),
            Body::Json(json) => json.read(bytes, row),
            Body::Xml(xml) => xml.read(bytes, row),
            Body::Binary => Ok(()),
        };
        // A half-read message must not match by the fields before its error.
        if result.is_err() {
            row.reset(self.slots);
        }
        result
    }
}
