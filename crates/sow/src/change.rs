//! Changes of records.

use crate::key::Key;
use crate::parsed_fields::ParsedFields;
use crate::record::Record;
use lanecast_filter::Message;
use lanecast_filter::interpreter::Environment;
use lanecast_filter::row::Row;

/// Cause of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A message was published and has replaced the record.
    Published,
    /// A delta was published and merged into the record.
    Merged,
    /// The record was deleted.
    Deleted,
    /// The record's lifetime has ended.
    Expired,
}

/// A change of one record.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// Key of the record.
    pub key: Key,
    /// Sequence of the change within the topic.
    pub sequence: u64,
    /// Cause of the change.
    pub cause: Cause,
    /// The record before the change; `None` if it is new.
    pub before: Option<Version<'a>>,
    /// The record after the change; `None` if it was removed.
    pub after: Option<Version<'a>>,
    /// Topic, publisher and time, for expressions.
    pub environment: Environment<'a>,
    /// Row of the record in the topic.
    pub(crate) row_id: u32,
}

/// One state of a record, with its parsed fields.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    record: &'a Record,
    parsed: &'a ParsedFields,
}

impl<'a> Version<'a> {
    pub(crate) fn new(record: &'a Record, parsed: &'a ParsedFields) -> Self {
        Self { record, parsed }
    }

    /// The record.
    pub fn record(self) -> &'a Record {
        self.record
    }

    /// The values of the fields that the topic parses.
    pub fn row(self) -> &'a Row {
        self.parsed.row(self.record.bytes())
    }

    /// The record as input of a filter.
    pub fn message(self, environment: &'a Environment<'a>) -> Message<'a> {
        Message { row: self.row(), bytes: self.record.bytes(), environment }
    }
}
