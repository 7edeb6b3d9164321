//! Contents of publish and delete commands.

use lanecast_wire::command::{Command, Field, HeaderWriter};
use std::time::Duration;

/// A message with the options of its publisher.
#[derive(Clone, Copy, Debug, Default)]
pub struct Publication<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The payload.
    pub body: &'a [u8],
    /// Whether the payload has only the changed fields of a stored record and its key fields.
    pub is_delta: bool,
    /// The record's key, for topics whose publishers supply keys.
    pub key: Option<&'a str>,
    /// A correlation id, passed on to subscribers unread.
    pub correlation: Option<&'a str>,
    /// Lifetime of the record, rounded up to whole seconds; 0 is for ever. By default the topic's.
    pub lifetime: Option<Duration>,
}

/// The records to delete.
#[derive(Clone, Copy, Debug)]
pub enum Deletion<'a> {
    /// Records that match a filter.
    Filter(&'a str),
    /// Records with these keys.
    Keys(&'a [u64]),
    /// The record with the same key as this message.
    Like(&'a [u8]),
}

impl<'a> Publication<'a> {
    /// A message without options.
    pub fn of(topic: &'a str, body: &'a [u8]) -> Self {
        Self { topic, body, ..Self::default() }
    }

    pub(crate) fn command(&self) -> Command {
        if self.is_delta { Command::DeltaPublish } else { Command::Publish }
    }

    /// Adds its fields to the header of its command.
    pub(crate) fn write<'h>(&self, header: HeaderWriter<'h>) -> HeaderWriter<'h> {
        let header = header.text(Field::Topic, self.topic).text_if(Field::SowKey, self.key);
        let header = header.text_if(Field::CorrelationId, self.correlation);
        let begun = |time: Duration| u64::from(time.subsec_nanos() > 0);
        let seconds = self.lifetime.map(|time| time.as_secs().saturating_add(begun(time)));
        seconds.iter().fold(header, |header, seconds| header.number(Field::Expiration, *seconds))
    }
}

impl Deletion<'_> {
    /// Adds its fields to a header.
    pub(crate) fn write<'h>(&self, header: HeaderWriter<'h>) -> HeaderWriter<'h> {
        match self {
            Self::Filter(filter) => header.text(Field::Filter, filter),
            Self::Keys(keys) => {
                let keys: Vec<_> = keys.iter().map(u64::to_string).collect();
                header.text(Field::SowKeys, &keys.join(","))
            }
            Self::Like(_) => header,
        }
    }

    pub(crate) fn body(&self) -> &[u8] {
        match self {
            Self::Like(body) => body,
            Self::Filter(_) | Self::Keys(_) => &[],
        }
    }
}
