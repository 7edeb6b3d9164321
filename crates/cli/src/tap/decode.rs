//! Frames as fields with names, by the tables of `lanecast-wire`.

use super::topic_names::TopicNames;
use lanecast_wire::net::layout::{
    ADVERT_ENTRY, ADVERT_FLAGS, BLOCK_HEADER, FieldType, Flag, Flags, ITEM_FLAGS, ITEM_HEADER,
    Layout, Part, REFUSALS, Structure, TOPIC_ENTRY,
};
use lanecast_wire::net::{Frame, Names, SealedHeader, names};
use serde_json::{Map, Value, json};
use std::net::Ipv6Addr;

/// Name of a sealed datagram.
pub(super) const SEALED: &str = "Sealed";

/// A frame's fields.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) name: &'static str,
    pub(super) flags: Vec<&'static str>,
    /// Sender of a sealed datagram.
    pub(super) session: u64,
    /// Counter of a sealed datagram.
    pub(super) sequence: u64,
    /// Fields of the body.
    pub(super) body: Map<String, Value>,
    /// Names of topics in it.
    pub(super) topics: Vec<String>,
}

impl Decoded {
    /// Reads a frame; remembers the topics that it names.
    pub(super) fn read(frame: &Frame<'_>, known: &mut TopicNames) -> Self {
        let layout = Layout::of(frame.kind);
        let mut decoded = Self {
            name: layout.name,
            flags: flag_names(layout.flags, frame.flags),
            session: frame.session,
            sequence: frame.sequence,
            body: Map::new(),
            topics: Vec::new(),
        };
        let mut rest = frame.body;
        for part in layout.parts {
            rest = decoded.read_part(part, rest, known);
        }
        decoded
    }

    /// Reads the header of a sealed datagram: all that is readable without the key.
    pub(super) fn sealed(header: &SealedHeader) -> Self {
        let key = header.key.get().swap_bytes();
        let fields = [("key", json!(format!("{key:04x}"))), ("length", header.length.get().into())];
        Self {
            name: SEALED,
            flags: Vec::new(),
            session: header.sender.get(),
            sequence: header.counter.get(),
            body: fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect(),
            topics: Vec::new(),
        }
    }

    /// Reads a part of the body; returns what follows it.
    fn read_part<'a>(&mut self, part: &Part, rest: &'a [u8], known: &mut TopicNames) -> &'a [u8] {
        match part {
            Part::One(structure) => {
                if let Some((fields, rest)) = split(structure, rest) {
                    self.body.extend(fields);
                    return rest;
                }
            }
            Part::List(structure) => {
                let whole = rest.chunks_exact(structure.bytes);
                let list = whole.filter_map(|bytes| split(structure, bytes));
                let list = list.map(|(fields, _)| Value::Object(fields)).collect();
                self.body.insert(format!("{}s", snake(structure.name)), Value::Array(list));
            }
            Part::Names => {
                let list = self.add_names(names(rest));
                self.body.insert("names".into(), list);
            }
            Part::Topics => self.read_topics(rest, known),
            Part::Adverts => self.read_adverts(rest),
            Part::Blocks => self.read_blocks(rest, known),
        }
        &[]
    }

    fn add_names(&mut self, names: Names<'_>) -> Value {
        let names: Vec<String> = names.map(str::to_owned).collect();
        self.topics.extend_from_slice(&names);
        names.into()
    }

    fn read_topics(&mut self, mut rest: &[u8], known: &mut TopicNames) {
        let mut list = Vec::new();
        while let Some((mut fields, after)) = split(&TOPIC_ENTRY, rest) {
            let length = number(&fields, "name") as usize;
            let Some(name) = after.get(..length) else { break };
            let name = String::from_utf8_lossy(name).into_owned();
            let topic = (self.session, number(&fields, "topic") as u32);
            known.add(topic, &name);
            fields.insert("name".into(), name.clone().into());
            self.topics.push(name);
            list.push(Value::Object(fields));
            rest = after.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        self.body.insert("topics".into(), list.into());
    }

    fn read_adverts(&mut self, mut rest: &[u8]) {
        let mut list = Vec::new();
        while let Some((mut fields, after)) = split(&ADVERT_ENTRY, rest) {
            let Some(bytes) = after.get(..number(&fields, "length") as usize) else { break };
            let flags = flag_names(Flags::Bits(ADVERT_FLAGS), number(&fields, "flags") as u16);
            fields.insert("flags".into(), flags.into());
            let names = self.add_names(names(bytes));
            fields.insert("names".into(), names);
            list.push(Value::Object(fields));
            rest = &after[bytes.len()..];
        }
        self.body.insert("entries".into(), list.into());
    }

    fn read_blocks(&mut self, mut rest: &[u8], known: &mut TopicNames) {
        let mut list = Vec::new();
        while let Some((mut fields, after)) = split(&BLOCK_HEADER, rest) {
            let length = number(&fields, "length") as usize;
            let Some(items) = after.get(..length).filter(|_| length > 0) else { break };
            fields.insert("items".into(), read_items(items).into());
            if let Some(name) = known.find((self.session, number(&fields, "topic") as u32)) {
                fields.insert("topic_name".into(), name.into());
                self.topics.push(name.to_owned());
            }
            list.push(Value::Object(fields));
            rest = &after[length..];
        }
        self.body.insert("blocks".into(), list.into());
    }
}

fn read_items(mut rest: &[u8]) -> Vec<Value> {
    let mut list = Vec::new();
    while let Some((mut fields, after)) = split(&ITEM_HEADER, rest) {
        let length = number(&fields, "length") as usize;
        if after.len() < length {
            break;
        }
        let flags = flag_names(Flags::Bits(ITEM_FLAGS), number(&fields, "flags") as u16);
        fields.insert("flags".into(), flags.into());
        list.push(Value::Object(fields));
        rest = after.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    list
}

/// Names of the flags that are set. A number without a name has none.
fn flag_names(flags: Flags, set: u16) -> Vec<&'static str> {
    let name = |flag: &Flag| flag.name;
    match flags {
        Flags::Bits(all) => all.iter().filter(|it| set & it.bits != 0).map(name).collect(),
        // A resolver daemon has further reasons.
        Flags::Reason(all) => {
            let reason = all.iter().chain(REFUSALS).find(|it| it.bits == set);
            reason.map(name).into_iter().collect()
        }
    }
}

/// The fields of a structure at the front of `bytes`, and what follows; reserved ones are left out.
fn split<'a>(structure: &Structure, bytes: &'a [u8]) -> Option<(Map<String, Value>, &'a [u8])> {
    let (front, rest) = bytes.split_at_checked(structure.bytes)?;
    let mut fields = Map::new();
    for field in structure.fields.iter().filter(|field| field.name != "reserved") {
        let bytes = &front[field.offset..field.offset + field.field_type.bytes()];
        let value = match field.field_type {
            FieldType::Address => address(bytes).into(),
            _ if field.is_id => format!("{:016x}", little_endian(bytes)).into(),
            _ => little_endian(bytes).into(),
        };
        fields.insert(field.name.into(), value);
    }
    Some((fields, rest))
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn address(bytes: &[u8]) -> String {
    let bytes: [u8; 16] = bytes.try_into().unwrap_or_default();
    Ipv6Addr::from(bytes).to_canonical().to_string()
}

fn number(fields: &Map<String, Value>, name: &str) -> u64 {
    fields.get(name).and_then(Value::as_u64).unwrap_or_default()
}

/// `TopicHead` as `topic_head`.
pub(super) fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_wire::net::{FrameWriter, Kind, NAME_MAX, TopicEntry, WelcomeBody};
    use zerocopy::FromZeros;

    #[test]
    fn names_that_no_program_takes_are_not_remembered() {
        let (mut known, mut buffer) = (TopicNames::default(), vec![0; 40_000]);
        for (number, length) in [(1, NAME_MAX), (2, NAME_MAX + 1), (3, 30_000)] {
            let mut writer = FrameWriter::new(&mut buffer, Kind::Welcome, 0, 7, 0);
            let entry = TopicEntry { topic: u32::into(number), ..TopicEntry::new_zeroed() };
            assert!(writer.add(&WelcomeBody::new_zeroed()));
            assert!(writer.add_topic(entry, &"x".repeat(length)));
            let length = writer.finish();
            let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
            assert_eq!(Decoded::read(&frame, &mut known).topics.len(), 1, "it is shown");
        }
        assert!([1, 2, 3].map(|topic| known.find((7, topic)).is_some()) == [true, false, false]);
    }
}
