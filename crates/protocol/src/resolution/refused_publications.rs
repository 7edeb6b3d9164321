//! Publishers that found no room among the known ones, to be asked for again.
//!
//! The group's Adverts are repeated, but a daemon tells of a publisher once. So the resolver
//! remembers the topics, and queries for them again when other publishers have made room.

use crate::{Nanos, SECOND};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Most topics remembered; if there are more, all are queried for.
const TOPICS_MAX: usize = 1_024;
/// Shortest time between two Queries for remembered topics, and between two for all: a host
/// that makes room and takes it again must not have daemons answer all the time.
const PAUSE: Nanos = 10 * SECOND;
const PAUSE_OF_ALL: Nanos = 60 * SECOND;

/// Topics of publishers that found no room.
#[derive(Debug, Default)]
pub(super) struct RefusedPublications {
    topics: BTreeSet<Arc<str>>,
    /// More were refused than are remembered.
    has_more: bool,
    /// Topics that had left the table of known publishers when the first one was refused.
    seen: u64,
    next_at: Nanos,
    next_for_all_at: Nanos,
}

/// Topics to query for again.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum QueriedAgain {
    Topics(BTreeSet<Arc<str>>),
    All,
}

impl RefusedPublications {
    /// A publisher of `topic` found no room; `removed` topics have left the table so far.
    pub(super) fn add(&mut self, topic: &Arc<str>, removed: u64) {
        if self.topics.is_empty() && !self.has_more {
            self.seen = removed;
        }
        if self.topics.len() < TOPICS_MAX {
            self.topics.insert(Arc::clone(topic));
        } else {
            self.has_more |= !self.topics.contains(topic);
        }
    }

    /// Time of the next Query, if there is room since publishers were refused.
    pub(super) fn deadline(&self, removed: u64) -> Option<Nanos> {
        let has_room = removed != self.seen;
        match (self.topics.is_empty(), self.has_more) {
            _ if !has_room => None,
            (_, true) => Some(self.next_for_all_at),
            (false, false) => Some(self.next_at),
            (true, false) => None,
        }
    }

    /// Topics to query for now; they are remembered anew if they are refused again.
    pub(super) fn take(&mut self, now: Nanos, removed: u64) -> Option<QueriedAgain> {
        self.deadline(removed).filter(|due| *due <= now)?;
        self.next_at = now.saturating_add(PAUSE);
        let topics = std::mem::take(&mut self.topics);
        if std::mem::take(&mut self.has_more) {
            self.next_for_all_at = now.saturating_add(PAUSE_OF_ALL);
            return Some(QueriedAgain::All);
        }
        Some(QueriedAgain::Topics(topics))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(count: usize) -> impl Iterator<Item = Arc<str>> {
        (0..count).map(|number| Arc::from(format!("t.{number}")))
    }

    #[test]
    fn topics_are_queried_for_once_there_is_room_and_not_too_often() {
        let mut refused = RefusedPublications::default();
        assert_eq!(refused.take(SECOND, 1), None, "nothing was refused");
        topics(2).for_each(|topic| refused.add(&topic, 1));
        assert_eq!((refused.deadline(1), refused.take(SECOND, 1)), (None, None), "no room");
        let both = QueriedAgain::Topics(topics(2).collect());
        assert_eq!(refused.take(SECOND, 2), Some(both));
        assert_eq!(refused.take(SECOND, 3), None, "once");
        topics(1).for_each(|topic| refused.add(&topic, 3));
        assert_eq!(refused.deadline(4), Some(SECOND + PAUSE));
        assert_eq!(refused.take(SECOND + PAUSE - 1, 4), None);
        assert!(refused.take(SECOND + PAUSE, 4).is_some());
    }

    #[test]
    fn more_topics_than_are_remembered_have_all_queried_for() {
        let mut refused = RefusedPublications::default();
        for now in [SECOND, SECOND + PAUSE_OF_ALL] {
            topics(TOPICS_MAX).chain(topics(TOPICS_MAX)).for_each(|topic| refused.add(&topic, 7));
            assert!(!refused.has_more, "none is counted twice");
            refused.add(&Arc::from("another"), 7);
            assert_eq!(refused.topics.len(), TOPICS_MAX);
            if now > SECOND {
                assert_eq!((refused.deadline(8), refused.take(now - 1, 8)), (Some(now), None));
            }
            assert_eq!(refused.take(now, 8), Some(QueriedAgain::All));
        }
    }
}
