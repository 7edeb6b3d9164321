//! lanecast's index.

use super::Side;
use crate::Wish;
use anyhow::Result;
use lanecast_filter::fields::FieldSet;
use lanecast_filter::interpreter::Environment;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Filter, Index, Message};

#[derive(Debug)]
pub(crate) struct Lanecast {
    index: Index,
    reader: Reader,
    row: Row,
}

impl Lanecast {
    pub(crate) fn new(wishes: &[Wish]) -> Result<Self> {
        let (mut index, mut fields) = (Index::new(), FieldSet::new(MessageType::Fix));
        for (id, wish) in (0..).zip(wishes) {
            index.insert(id, &Filter::parse(&wish.lanecast())?, &mut fields)?;
        }
        Ok(Self { index, reader: Reader::new(&fields), row: Row::new() })
    }
}

impl<'a> Side<'a> for Lanecast {
    fn name(&self) -> &'static str {
        "lanecast"
    }

    fn matches(&mut self, message: &'a [u8], ids: &mut Vec<u32>) {
        self.reader.read(message, &mut self.row).expect("well formed");
        let environment = &Environment { topic: "orders", ..Environment::default() };
        self.index.matches(&Message { row: &self.row, bytes: message, environment }, ids);
    }
}
