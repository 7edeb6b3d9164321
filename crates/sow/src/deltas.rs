//! Delta updates: only the changed fields of a record.

use crate::change::Cause;
use crate::definition::TopicDefinition;
use crate::record::Record;
use crate::sink::{Event, Sink};
use lanecast_filter::difference::difference;
use lanecast_filter::message_type::Format;
use lanecast_filter::path::Path;

/// Builds delta messages of one topic.
#[derive(Debug, Default)]
pub(crate) struct Deltas {
    /// Format and key fields of the topic, once a subscription wants deltas.
    topic: Option<(Format, Vec<Path>)>,
    bytes: Vec<u8>,
}

impl Deltas {
    /// Sets the topic.
    pub(crate) fn of(&mut self, definition: &TopicDefinition) {
        self.topic = Some((definition.format, definition.keys.clone()));
    }

    /// Delivers to `ids` the fields of `record` that differ from `base`, and the key fields.
    /// Message types without deltas get the whole record.
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
