//! Where the records of a kept topic are.

use crate::command::error::CommandError;
use crate::topic::durable_store::DurableStore;
use lanecast_sow::{Change, Key, Publication, Topic, ViewGraph};

/// Where the records of a kept topic are.
#[derive(Debug)]
pub(crate) enum RecordStore {
    /// Here, in memory alone.
    Own(Box<Topic>),
    /// Here, and on disk.
    Durable(Box<Topic>),
    /// With the view of that number, which alone changes them.
    View(usize),
}

impl RecordStore {
    /// The records, if they are not those of a view.
    pub(crate) fn own(&self) -> Option<&Topic> {
        match self {
            Self::Own(topic) | Self::Durable(topic) => Some(topic),
            Self::View(_) => None,
        }
    }

    /// The same, to ask for fields.
    pub(crate) fn own_mut(&mut self) -> Option<&mut Topic> {
        match self {
            Self::Own(topic) | Self::Durable(topic) => Some(topic),
            Self::View(_) => None,
        }
    }

    pub(crate) fn topic_mut<'a>(&'a mut self, cascade: &'a mut ViewGraph) -> &'a mut Topic {
        match self {
            Self::Own(topic) | Self::Durable(topic) => topic,
            Self::View(number) => cascade.views_mut()[*number].topic_mut(),
        }
    }

    /// Publishes a message, or merges it into its record.
    pub(crate) fn publish<'a>(
        &'a mut self,
        publication: &Publication<'a>,
        merges: bool,
        now_ns: u64,
        disk: Option<&mut DurableStore>,
    ) -> Result<Change<'a>, CommandError> {
        match (self, disk) {
            (Self::Own(topic), _) => Ok(match merges {
                true => topic.publish_delta(publication, now_ns)?,
                false => topic.publish(publication, now_ns)?,
            }),
            (Self::Durable(topic), Some(disk)) => disk.publish(topic, publication, merges, now_ns),
            (Self::Durable(_), None) => Err(CommandError::NotDurable),
            (Self::View(_), _) => Err(CommandError::IsView),
        }
    }

    /// The number of the record of a message's key.
    pub(crate) fn find_as(
        &mut self,
        publication: &Publication<'_>,
    ) -> Result<Option<Key>, CommandError> {
        match self {
            Self::Own(topic) | Self::Durable(topic) => Ok(topic.key_of(publication)?),
            Self::View(_) => Err(CommandError::IsView),
        }
    }

    pub(crate) fn delete<'a>(
        &'a mut self,
        key: Key,
        client: &'a str,
        now_ns: u64,
        disk: Option<&mut DurableStore>,
    ) -> Result<Option<Change<'a>>, CommandError> {
        match (self, disk) {
            (Self::Own(topic), _) => Ok(topic.delete(key, client, now_ns)),
            (Self::Durable(topic), Some(disk)) => disk.delete(topic, key, client, now_ns),
            (Self::Durable(_), None) => Err(CommandError::NotDurable),
            (Self::View(_), _) => Err(CommandError::IsView),
        }
    }

    /// Removes one record whose time is over, if there is one.
    pub(crate) fn expire(
        &mut self,
        now_ns: u64,
        disk: Option<&mut DurableStore>,
    ) -> Result<Option<Change<'_>>, CommandError> {
        match (self, disk) {
            (Self::Own(topic), _) => Ok(topic.expire(now_ns)),
            (Self::Durable(topic), Some(disk)) => disk.expire(topic, now_ns),
            (Self::Durable(_), None) => Err(CommandError::NotDurable),
            (Self::View(_), _) => Ok(None),
        }
    }
}
