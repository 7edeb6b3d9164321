//! JSON, its values as they are written.

use super::tree::{DEPTH_MAX, Fields};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt::{self, Formatter};

/// The members of an object, unread.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder)
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

pub(super) fn parse(message: &[u8]) -> Result<Fields, String> {
    let value: &RawValue = serde_json::from_slice(message).map_err(|error| error.to_string())?;
    read(value, 0).map_err(|error| error.to_string())
}

fn read(value: &RawValue, depth: usize) -> serde_json::Result<Fields> {
    let text = value.get();
    if depth > DEPTH_MAX {
        return Err(serde_json::Error::custom(format!("more than {DEPTH_MAX} levels")));
    }
    match text.as_bytes().first() {
        Some(b'{') => {
            let Members(members) = serde_json::from_str(text)?;
            let members = members.into_iter();
            let fields = members.map(|(name, value)| Ok((name, read(value, depth + 1)?)));
            fields.collect::<serde_json::Result<_>>().map(Fields::Named)
        }
        Some(b'[') => {
            let values: Vec<&RawValue> = serde_json::from_str(text)?;
            let values = values.into_iter().map(|value| read(value, depth + 1));
            values.collect::<serde_json::Result<_>>().map(Fields::List)
        }
        _ => Ok(Fields::Value(text.to_owned())),
    }
}
