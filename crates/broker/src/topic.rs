//! A topic: who wants which of its messages.

use crate::kept::Kept;
use crate::refusal::Refusal;
use crate::world::World;
use lanecast_filter::fields::Fields;
use lanecast_filter::index::InsertError;
use lanecast_filter::kind::Kind;
use lanecast_filter::malformed::Malformed;
use lanecast_filter::naive::Environment;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Filter, Index, Message};
use lanecast_sow::Options;

/// The longest name, in bytes.
pub(crate) const NAME_MAX: usize = 255;

/// A topic's messages pass by, or the last ones are kept.
#[derive(Debug)]
pub(crate) enum Room {
    Passing(Box<Topic>),
    Kept(Box<Kept>),
}

impl Room {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Passing(topic) => &topic.name,
            Self::Kept(kept) => &kept.name,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Passing(topic) => topic.kind,
            Self::Kept(kept) => kept.kind(),
        }
    }

    pub(crate) fn subscribe(
        &mut self,
        number: u32,
        filter: Option<&Filter>,
        options: Options,
        world: &mut World,
    ) -> Result<(), Refusal> {
        match self {
            Self::Passing(topic) => topic.subscribe(number, filter)?,
            Self::Kept(kept) => kept.subscribe(number, filter, options, world)?,
        }
        Ok(())
    }

    pub(crate) fn unsubscribe(&mut self, number: u32, world: &mut World) {
        match self {
            Self::Passing(topic) => topic.unsubscribe(number),
            Self::Kept(kept) => kept.unsubscribe(number, world),
        }
    }
}

/// Messages of one type, and subscriptions to them.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) name: Box<str>,
    pub(crate) kind: Kind,
    fields: Fields,
    /// Reads the fields that filters ask for; made anew when those have changed.
    reader: Option<Reader>,
    row: Row,
    index: Index,
    /// Subscriptions without a filter.
    everything: Vec<u32>,
}

impl Topic {
    pub(crate) fn new(name: &str, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
            fields: Fields::new(kind),
            reader: None,
            row: Row::new(),
            index: Index::new(),
            everything: Vec::new(),
        }
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
                self.reader = None;
            }
        }
        Ok(())
    }

    pub(crate) fn unsubscribe(&mut self, number: u32) {
        if self.index.remove(number, &mut self.fields) {
            self.reader = None;
        } else {
            self.everything.retain(|other| *other != number);
        }
    }

    /// The subscriptions that a message is for.
    ///
    /// # Errors
    /// If a filter asks for a field, and the message cannot be read as far as that.
    #[inline]
    pub(crate) fn matches(
        &mut self,
        bytes: &[u8],
        client: &str,
        unix_ns: u64,
        numbers: &mut Vec<u32>,
    ) -> Result<(), Malformed> {
        numbers.clear();
        let reader = self.reader.get_or_insert_with(|| Reader::new(&self.fields));
        reader.read(bytes, &mut self.row)?;
        let environment = Environment { topic: &self.name, client, unix_ns };
        let message = Message { row: &self.row, bytes, environment: &environment };
        self.index.matches(&message, numbers);
        numbers.extend_from_slice(&self.everything);
        Ok(())
    }
}

/// Whether a name is that of a topic.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len()) && !name.bytes().any(|byte| byte.is_ascii_control())
}

/// Whether a name stands for all topics that hold it as a pattern. A dot alone does not make it
/// one: names have them.
pub(crate) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '+', '?', '(', ')', '[', ']', '{', '}', '|', '^', '$', '\\'])
}
