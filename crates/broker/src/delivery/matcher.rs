//! Matches a message against the filters of many subscriptions to one topic or pattern.

use crate::delivery::subscriptions::SubscriptionIds;
use crate::ids::SubscriptionId;
use lanecast_filter::fields::FieldSet;
use lanecast_filter::index::InsertError;
use lanecast_filter::interpreter::Environment;
use lanecast_filter::malformed::Malformed;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Filter, Index, Message};

/// Subscriptions to messages of one type, with an index over their filters.
#[derive(Debug)]
pub(crate) struct Matcher {
    fields: FieldSet,
    /// Parses the fields that filters use; `None` after those changed.
    reader: Option<Reader>,
    row: Row,
    index: Index,
    /// Subscriptions without a filter.
    unfiltered: Vec<SubscriptionId>,
    /// Number of subscriptions with a filter.
    filtered: usize,
}

impl Matcher {
    pub(crate) fn new(kind: MessageType) -> Self {
        Self {
            fields: FieldSet::new(kind),
            reader: None,
            row: Row::new(),
            index: Index::new(),
            unfiltered: Vec::new(),
            filtered: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.unfiltered.is_empty() && self.filtered == 0
    }

    pub(crate) fn subscribe(
        &mut self,
        id: SubscriptionId,
        filter: Option<&Filter>,
    ) -> Result<(), InsertError> {
        match filter {
            None => self.unfiltered.push(id),
            Some(filter) => {
                // The index first: if it refuses, the count and the reader stay as they are.
                self.index.insert(id.0, filter, &mut self.fields)?;
                self.filtered += 1;
                // The reader is out of date once the filter registers fields; the next message
                // rebuilds it.
                self.reader = None;
            }
        }
        Ok(())
    }

    pub(crate) fn unsubscribe(&mut self, id: SubscriptionId) {
        if self.index.remove(id.0, &mut self.fields) {
            self.filtered -= 1;
            self.reader = None;
        } else if let Some(at) = self.unfiltered.iter().position(|other| *other == id) {
            // The order of subscriptions has no meaning, so the last one fills the gap.
            self.unfiltered.swap_remove(at);
        }
    }

    /// Replaces `ids` by the subscriptions that the message matches.
    ///
    /// # Errors
    /// If the message cannot be parsed up to a field that a filter needs.
    #[inline]
    pub(crate) fn matches(
        &mut self,
        bytes: &[u8],
        environment: &Environment<'_>,
        ids: &mut SubscriptionIds,
    ) -> Result<(), Malformed> {
        ids.clear();
        // Rebuilt on the first message after a change, so that many subscriptions cost one rebuild.
        let reader = self.reader.get_or_insert_with(|| Reader::new(&self.fields));
        // One pass over the message serves all filters.
        reader.read(bytes, &mut self.row)?;
        let message = Message { row: &self.row, bytes, environment };
        self.index.matches(&message, ids.numbers_mut());
        // Last, since the index overwrites the list.
        ids.extend(&self.unfiltered);
        Ok(())
    }
}
