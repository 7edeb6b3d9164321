//! Telling of a record only what has changed.

use crate::change::Cause;
use crate::definition::TopicDefinition;
use crate::record::Record;
use crate::sink::{Event, Sink};
use lanecast_filter::difference::difference;
use lanecast_filter::message_type::Format;
use lanecast_filter::path::Path;

/// What changes are made of, for one topic.
#[derive(Debug, Default)]
pub(crate) struct Deltas {
    /// How the topic's messages are written, and its key fields, once somebody wants deltas.
    topic: Option<(Format, Vec<Path>)>,
    bytes: Vec<u8>,
}

impl Deltas {
    /// From now on this is the topic.
    pub(crate) fn of(&mut self, definition: &TopicDefinition) {
        self.topic = Some((definition.format, definition.keys.clone()));
    }

    /// Tells `ids` what of `record` is not as it was in `base`, and the key fields. Where messages
    /// have no deltas they are told the whole record.
    pub(crate) fn deliver(
        &mut self,
        ids: &[u32],
        base: &Record,
        record: &Record,
        cause: Cause,
        sink: &mut impl Sink,
    ) {
        self.bytes.clear();
        let (old, new) = (base.bytes(), record.bytes());
        let topic = self.topic.as_ref();
        let made = topic.map(|(format, keys)| difference(*format, old, new, keys, &mut self.bytes));
        match made {
            Some(Ok(changes)) => {
                sink.deliver(ids, Event::Delta { record, base, changes, bytes: &self.bytes });
            }
            _ => sink.deliver(ids, Event::Update { record, cause }),
        }
    }
}
