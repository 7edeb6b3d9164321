//! The records of a SOW topic: in memory, in memory and on disk, or computed by a view.

use crate::command::error::CommandError;
use crate::topic::durable_store::DurableStore;
use crate::topic::views::Views;
use lanecast_sow::{Change, Key, Publication, Topic};

/// The records of a SOW topic.
#[derive(Debug)]
pub(crate) enum RecordStore {
    /// In memory alone.
    Memory(Box<Topic>),
    /// In memory; changes go through the durable store.
    Durable(Box<Topic>),
    /// Owned by the view with that index, which alone changes them.
    View(usize),
}

impl RecordStore {
    /// The records, unless a view owns them.
    pub(crate) fn owned(&self) -> Option<&Topic> {
        match self {
            Self::Memory(topic) | Self::Durable(topic) => Some(topic),
            Self::View(_) => None,
        }
    }

    /// The same, mutable: to register fields to parse.
    pub(crate) fn owned_mut(&mut self) -> Option<&mut Topic> {
        match self {
            Self::Memory(topic) | Self::Durable(topic) => Some(topic),
            Self::View(_) => None,
        }
    }

    pub(crate) fn topic_mut<'a>(&'a mut self, views: &'a mut Views) -> &'a mut Topic {
        match self {
            Self::Memory(topic) | Self::Durable(topic) => topic,
            Self::View(view) => views.topic_mut(*view),
        }
    }

    /// Stores a message as its key's record, or is_delta it into that.
    pub(crate) fn publish<'a>(
        &'a mut self,
        publication: &Publication<'a>,
        is_delta: bool,
        now_ns: u64,
        store: Option<&mut DurableStore>,
    ) -> Result<Change<'a>, CommandError> {
        match (self, store) {
            (Self::Memory(topic), _) => Ok(match is_delta {
                true => topic.publish_delta(publication, now_ns)?,
                false => topic.publish(publication, now_ns)?,
            }),
            (Self::Durable(topic), Some(store)) => {
                store.publish(topic, publication, is_delta, now_ns)
            }
            // Impossible after a successful start; an error is better than a record that is not
            // logged.
            (Self::Durable(_), None) => Err(CommandError::NotDurable),
            (Self::View(_), _) => Err(CommandError::IsView),
        }
    }

    /// The record with a message's key.
    pub(crate) fn key_of(
        &mut self,
        publication: &Publication<'_>,
    ) -> Result<Option<Key>, CommandError> {
        match self {
            Self::Memory(topic) | Self::Durable(topic) => Ok(topic.key_of(publication)?),
            Self::View(_) => Err(CommandError::IsView),
        }
    }

    pub(crate) fn delete<'a>(
        &'a mut self,
        key: Key,
        client: &'a str,
        now_ns: u64,
        store: Option<&mut DurableStore>,
    ) -> Result<Option<Change<'a>>, CommandError> {
        match (self, store) {
            (Self::Memory(topic), _) => Ok(topic.delete(key, client, now_ns)),
            (Self::Durable(topic), Some(store)) => store.delete(topic, key, client, now_ns),
            (Self::Durable(_), None) => Err(CommandError::NotDurable),
            (Self::View(_), _) => Err(CommandError::IsView),
        }
    }

    /// Deletes one expired record, if there is one.
    pub(crate) fn expire(
        &mut self,
        now_ns: u64,
        store: Option<&mut DurableStore>,
    ) -> Result<Option<Change<'_>>, CommandError> {
        match (self, store) {
            (Self::Memory(topic), _) => Ok(topic.expire(now_ns)),
            (Self::Durable(topic), Some(store)) => store.expire(topic, now_ns),
            (Self::Durable(_), None) => Err(CommandError::NotDurable),
            // Records of a view live as long as those of its source.
            (Self::View(_), _) => Ok(None),
        }
    }
}
