//! Readers: from the bytes of a message to the values that somebody wants.

pub(crate) mod json;
mod pairs;
mod xml;

use crate::fields::Fields;
use crate::kind::Kind;
use crate::malformed::{Malformed, Reason};
use crate::row::Row;
use json::Json;
use pairs::Pairs;
use xml::Xml;

/// Reads messages of one format for those fields that were wanted when it was made.
///
/// It stops as soon as it has found them, so what follows is not looked at: whether a message is
/// malformed there, no reader can tell. `docs/protocol/messages.md` says what each kind accepts.
#[derive(Clone, Debug)]
pub struct Reader {
    slots: usize,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    Pairs(Pairs),
    Json(Json),
    Xml(Xml),
    /// Has no fields.
    Binary,
}

impl Reader {
    /// A reader for `fields`.
    pub fn new(fields: &Fields) -> Self {
        let body = match fields.format().kind() {
            Kind::Fix | Kind::Nvfix => Body::Pairs(Pairs::new(fields)),
            Kind::Json => Body::Json(Json::new(fields)),
            Kind::Xml => Body::Xml(Xml::new(fields)),
            Kind::Binary => Body::Binary,
        };
        Self { slots: fields.len(), body }
    }

    /// Reads `bytes` into `row`, which forgets what it held before.
    ///
    /// Allocates nothing once the row and the reader have seen messages of this size and depth.
    ///
    /// # Errors
    ///
    /// If the message is malformed before everything was found. Then the row is empty.
    #[inline]
    pub fn read(&mut self, bytes: &[u8], row: &mut Row) -> Result<(), Malformed> {
        row.begin(self.slots);
        let result = match &mut self.body {
            _ if bytes.len() >= u32::MAX as usize => Err(Malformed::new(0, Reason::TooLong)),
            Body::Pairs(pairs) => pairs.read(bytes, row),
            Body::Json(json) => json.read(bytes, row),
            Body::Xml(xml) => xml.read(bytes, row),
            Body::Binary => Ok(()),
        };
        if result.is_err() {
            row.begin(self.slots);
        }
        result
    }
}
