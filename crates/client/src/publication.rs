//! What is published, and what is removed.

use lanecast_wire::command::{Command, Field, HeaderWriter};
use std::time::Duration;

/// A message, and what its publisher says with it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Publication<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The message itself.
    pub body: &'a [u8],
    /// Whether it has only the fields of a kept record that change, along with those of its key.
    pub is_delta: bool,
    /// Which record it is, in a topic whose keys are supplied by publishers.
    pub key: Option<&'a str>,
    /// What subscribers get with it, unread.
    pub correlation: Option<&'a str>,
    /// How long its record lives, in whole seconds: what is begun counts, and none is for ever.
    /// Without it, as long as the topic says.
    pub lifetime: Option<Duration>,
}

/// Which records are removed.
#[derive(Clone, Copy, Debug)]
pub enum Deletion<'a> {
    /// Those that meet a filter.
    Filter(&'a str),
    /// Those with these numbers, as records tell them.
    Keys(&'a [u64]),
    /// The one whose key this message has.
    Like(&'a [u8]),
}

impl<'a> Publication<'a> {
    /// A message that says nothing besides.
    pub fn of(topic: &'a str, body: &'a [u8]) -> Self {
        Self { topic, body, ..Self::default() }
    }

    pub(crate) fn command(&self) -> Command {
        if self.is_delta { Command::DeltaPublish } else { Command::Publish }
    }

    /// Adds what it says to the header of its command.
    pub(crate) fn write<'h>(&self, header: HeaderWriter<'h>) -> HeaderWriter<'h> {
        let header = header.text(Field::Topic, self.topic).text_if(Field::SowKey, self.key);
        let header = header.text_if(Field::CorrelationId, self.correlation);
        let begun = |time: Duration| u64::from(time.subsec_nanos() > 0);
        let seconds = self.lifetime.map(|time| time.as_secs().saturating_add(begun(time)));
        seconds.iter().fold(header, |header, seconds| header.number(Field::Expiration, *seconds))
    }
}

impl Deletion<'_> {
    /// Adds what it says to a header.
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
