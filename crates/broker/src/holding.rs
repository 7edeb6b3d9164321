//! Where the records of a kept topic are.

use crate::refusal::Refusal;
use lanecast_sow::{Cascade, Change, Key, Publication, Topic};

/// Where the records of a kept topic are.
#[derive(Debug)]
pub(crate) enum Holding {
    /// Here, in memory alone.
    Own(Box<Topic>),
    /// With the view of that number, which alone changes them.
    View(usize),
}

impl Holding {
    /// The records, if they are not those of a view.
    pub(crate) fn own(&self) -> Option<&Topic> {
        match self {
            Self::Own(topic) => Some(topic),
            Self::View(_) => None,
        }
    }

    pub(crate) fn topic_mut<'a>(&'a mut self, cascade: &'a mut Cascade) -> &'a mut Topic {
        match self {
            Self::Own(topic) => topic,
            Self::View(number) => cascade.views_mut()[*number].topic_mut(),
        }
    }

    /// Publishes a message, or merges it into its record.
    pub(crate) fn publish<'a>(
        &'a mut self,
        publication: &Publication<'a>,
        merges: bool,
        now_ns: u64,
    ) -> Result<Change<'a>, Refusal> {
        match self {
            Self::Own(topic) => Ok(match merges {
                true => topic.publish_delta(publication, now_ns)?,
                false => topic.publish(publication, now_ns)?,
            }),
            Self::View(_) => Err(Refusal::IsView),
        }
    }

    /// The number of the record of a message's key.
    pub(crate) fn find_as(
        &mut self,
        publication: &Publication<'_>,
    ) -> Result<Option<Key>, Refusal> {
        match self {
            Self::Own(topic) => Ok(topic.key_of(publication)?),
            Self::View(_) => Err(Refusal::IsView),
        }
    }

    pub(crate) fn delete<'a>(
        &'a mut self,
        key: Key,
        client: &'a str,
        now_ns: u64,
    ) -> Option<Change<'a>> {
        match self {
            Self::Own(topic) => topic.delete(key, client, now_ns),
            Self::View(_) => None,
        }
    }

    /// Removes one record whose time is over, if there is one.
    pub(crate) fn expire(&mut self, now_ns: u64) -> Option<Change<'_>> {
        match self {
            Self::Own(topic) => topic.expire(now_ns),
            Self::View(_) => None,
        }
    }
}
