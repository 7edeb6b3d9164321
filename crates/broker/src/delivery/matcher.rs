//! Which of many subscriptions a message is for.

use lanecast_filter::fields::FieldSet;
use lanecast_filter::index::InsertError;
use lanecast_filter::interpreter::Environment;
use lanecast_filter::malformed::Malformed;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Filter, Index, Message};

/// Subscriptions to messages of one type, with their filters.
#[derive(Debug)]
pub(crate) struct Matcher {
    fields: FieldSet,
    /// Reads the fields that filters ask for; made anew when those have changed.
    reader: Option<Reader>,
    row: Row,
    index: Index,
    /// Subscriptions without a filter.
    everything: Vec<u32>,
    /// Subscriptions with one.
    filtered: usize,
}

impl Matcher {
    pub(crate) fn new(kind: MessageType) -> Self {
        Self {
            fields: FieldSet::new(kind),
            reader: None,
            row: Row::new(),
            index: Index::new(),
            everything: Vec::new(),
            filtered: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.everything.is_empty() && self.filtered == 0
    }

    pub(crate) fn subscribe(
        &mut self,
        number: u32,
        filter: Option<&Filter>,
    ) -> Result<(), InsertError> {
        match filter {
            None => self.everything.push(number),
            Some(filter) => {
                self.index.insert(number, filter, &mut self.fields)?;
                self.filtered += 1;
                self.reader = None;
            }
        }
        Ok(())
    }

    pub(crate) fn unsubscribe(&mut self, number: u32) {
        if self.index.remove(number, &mut self.fields) {
            self.filtered -= 1;
            self.reader = None;
        } else if let Some(at) = self.everything.iter().position(|other| *other == number) {
            self.everything.swap_remove(at);
        }
    }

    /// Puts the subscriptions that a message is for in place of `numbers`.
    ///
    /// # Errors
    /// If a filter asks for a field, and the message cannot be read as far as that.
    #[inline]
    pub(crate) fn matches(
        &mut self,
        bytes: &[u8],
        environment: &Environment<'_>,
        numbers: &mut Vec<u32>,
    ) -> Result<(), Malformed> {
        numbers.clear();
        let reader = self.reader.get_or_insert_with(|| Reader::new(&self.fields));
        reader.read(bytes, &mut self.row)?;
        let message = Message { row: &self.row, bytes, environment };
        self.index.matches(&message, numbers);
        numbers.extend_from_slice(&self.everything);
        Ok(())
    }
}
