//! What happened to a record.

use crate::key::Key;
use crate::parsed_fields::ParsedFields;
use crate::record::Record;
use lanecast_filter::Message;
use lanecast_filter::interpreter::Environment;
use lanecast_filter::row::Row;

/// Why a record changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A message was published, and is the record now.
    Published,
    /// Fields were published, and stand in the record now.
    Merged,
    /// Somebody deleted it.
    Deleted,
    /// Its time was over.
    Expired,
}

/// What happened to one record.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The record's number.
    pub key: Key,
    /// The change's own number: one more than that of the topic's last one.
    pub sequence: u64,
    /// Why.
    pub cause: Cause,
    /// What the record was; nothing if it is new.
    pub before: Option<Version<'a>>,
    /// What it is; nothing if it is gone.
    pub after: Option<Version<'a>>,
    /// What expressions can ask for beyond the message: topic, publisher and time.
    pub environment: Environment<'a>,
    /// Where the record stands, or stood.
    pub(crate) row_id: u32,
}

/// A record as it was or is.
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

    /// What stands in the fields that somebody wants of this topic.
    pub fn row(self) -> &'a Row {
        self.parsed.row(self.record.bytes())
    }

    /// The record as filters look at it.
    pub fn message(self, environment: &'a Environment<'a>) -> Message<'a> {
        Message { row: self.row(), bytes: self.record.bytes(), environment }
    }
}
