//! A deletion of many records, in steps, so that other clients get their turn in between.
//!
//! A deletion covers the records of the topic at its beginning, as if all were deleted at once: a
//! covered record that is published again, or expires, is deleted first. Deletions of a topic run
//! one after another. Queries may still see records that are about to be deleted; the deleting
//! client waits for the end.

use crate::command::acknowledgement::ReplyTo;
use crate::command::error::CommandError;
use crate::ids::ClientId;
use lanecast_sow::{Change, Deletion, Key, Query, Topic};
use std::sync::Arc;

/// A deletion that is not complete.
#[derive(Debug)]
pub(crate) struct Removal {
    pub(crate) query: Query,
    /// Progress, once it has begun.
    deletion: Option<Deletion>,
    /// Name of the client that deletes.
    pub(crate) client_name: Arc<str>,
    /// Records in the topic at the beginning.
    pub(crate) records: usize,
    pub(crate) deleted: usize,
    pub(crate) request: RemovalRequest,
}

/// The command behind a deletion.
#[derive(Debug)]
pub(crate) struct RemovalRequest {
    pub(crate) client: ClientId,
    pub(crate) reply_to: ReplyTo<'static>,
    /// Equal to the client record's token, unless that client has gone.
    pub(crate) token: Arc<()>,
    /// Sequence number of the command.
    pub(crate) sequence: Option<u64>,
    /// Key under which the sequence number is stored, if the client has a name.
    pub(crate) sequence_key: Option<Arc<str>>,
}

impl Removal {
    pub(crate) fn new(query: Query, client_name: Arc<str>, request: RemovalRequest) -> Self {
        Self { query, deletion: None, client_name, records: 0, deleted: 0, request }
    }

    /// The next record to delete. Examines at most `budget` records, and reduces it.
    pub(crate) fn next(
        &mut self,
        topic: &Topic,
        now_ns: u64,
        budget: &mut usize,
    ) -> Result<Option<Key>, CommandError> {
        if self.deletion.is_none() {
            // Begun only at the front of the queue: earlier deletions may remove records first.
            let deletion = Deletion::new(topic, &self.query, now_ns);
            self.deletion = Some(deletion.map_err(lanecast_sow::TopicError::from)?);
            self.records = topic.len();
        }
        Ok(self.deletion.as_mut().and_then(|deletion| deletion.next(topic, budget)))
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.deletion.as_ref().is_some_and(Deletion::is_done)
    }

    /// Notes a change of a record.
    pub(crate) fn on_change(&mut self, change: &Change<'_>) {
        if let Some(deletion) = &mut self.deletion {
            deletion.on_change(change);
        }
    }

    /// Whether a record that is about to change must be deleted first.
    pub(crate) fn claims(&mut self, topic: &Topic, key: Key) -> bool {
        self.deletion.as_mut().is_some_and(|deletion| deletion.is_target(topic, key))
    }
}
