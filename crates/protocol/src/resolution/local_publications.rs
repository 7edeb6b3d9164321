//! Local publications: the sessions of this process and their topics, and when to advertise them.

use super::announcement::Announcement;
use super::schedule::{Backoff, Schedule, rounded};
use crate::rng::Rng;
use crate::{MILLISECOND, Nanos};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// A Query this soon after an Advert was answered by it.
const ANSWERED: Nanos = 5 * MILLISECOND;
/// Number of Adverts of a session's end.
const END_ADVERTS: u32 = 3;

/// Sessions and their topics, with the times of their Adverts.
#[derive(Debug)]
pub(super) struct LocalPublications {
    sessions: BTreeMap<u64, Session>,
    /// Sessions of each topic, and the topic's index there.
    indices: BTreeMap<Arc<str>, Vec<(u64, usize)>>,
    topics_due: Schedule<(u64, usize)>,
    ended: BTreeMap<u64, Ended>,
    ended_due: Schedule<u64>,
}

#[derive(Debug)]
struct Session {
    announcement: Announcement,
    topics: Vec<Topic>,
}

#[derive(Debug)]
struct Topic {
    name: Arc<str>,
    backoff: Backoff,
    due: Nanos,
    advertised_at: Option<Nanos>,
}

#[derive(Debug)]
struct Ended {
    announcement: Announcement,
    backoff: Backoff,
    due: Nanos,
}

impl LocalPublications {
    pub(super) const fn new() -> Self {
        Self {
            sessions: BTreeMap::new(),
            indices: BTreeMap::new(),
            topics_due: Schedule::new(),
            ended: BTreeMap::new(),
            ended_due: Schedule::new(),
        }
    }

    /// Adds a topic of a session, or updates the session; the Advert is due at once.
    pub(super) fn add(&mut self, announcement: Announcement, name: &str) {
        let id = announcement.session;
        let session =
            self.sessions.entry(id).or_insert_with(|| Session { announcement, topics: Vec::new() });
        session.announcement = announcement;
        let (name, indices) = match self.indices.get_key_value(name) {
            Some((name, _)) => (Arc::clone(name), self.indices.entry(Arc::clone(name))),
            None => {
                let name = Arc::<str>::from(name);
                (Arc::clone(&name), self.indices.entry(name))
            }
        };
        let indices = indices.or_default();
        // Published before.
        if indices.iter().any(|(session, _)| *session == id) {
            return;
        }
        let index = session.topics.len();
        indices.push((id, index));
        session.topics.push(Topic {
            name,
            backoff: Backoff::default(),
            due: 0,
            advertised_at: None,
        });
        // Due at once: subscribers may wait already.
        self.topics_due.put(0, (id, index));
    }

    /// A topic of a session, by its index.
    pub(super) fn topic(&self, id: u64, index: usize) -> Option<(Announcement, &Arc<str>)> {
        let session = self.sessions.get(&id)?;
        Some((session.announcement, &session.topics.get(index)?.name))
    }

    /// Index of a session's topic.
    pub(super) fn index_of(&self, id: u64, name: &str) -> Option<usize> {
        let entry = self.indices.get(name)?.iter().find(|(session, _)| *session == id);
        entry.map(|(_, index)| *index)
    }

    /// Sessions and indices of all topics.
    pub(super) fn indices(&self) -> impl Iterator<Item = (u64, usize)> {
        let each = |(id, session): (&u64, &Session)| {
            let id = *id;
            (0..session.topics.len()).map(move |index| (id, index))
        };
        self.sessions.iter().flat_map(each)
    }

    /// Ends a session; false if there is none.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        let Some(session) = self.sessions.remove(&id) else { return false };
        for (index, topic) in session.topics.iter().enumerate() {
            self.topics_due.remove(topic.due, (id, index));
            if let Some(indices) = self.indices.get_mut(&topic.name) {
                indices.retain(|(session, _)| *session != id);
                if indices.is_empty() {
                    self.indices.remove(&topic.name);
                }
            }
        }
        let announcement = session.announcement;
        // The end is advertised several times, as each frame may be lost.
        self.ended.insert(id, Ended { announcement, backoff: Backoff::default(), due: 0 });
        self.ended_due.put(0, id);
        true
    }

    /// Whether the session belongs to this process.
    pub(super) fn has(&self, session: u64) -> bool {
        self.sessions.contains_key(&session) || self.ended.contains_key(&session)
    }

    /// Sessions that have a topic.
    pub(super) fn of(&self, name: &str) -> impl Iterator<Item = Announcement> {
        let indices = self.indices.get(name).into_iter().flatten();
        indices.filter_map(|(id, _)| Some(self.sessions.get(id)?.announcement))
    }

    /// Another resolver queries for a topic: makes its Advert due within `delay`.
    pub(super) fn on_query(&mut self, now: Nanos, name: &str, delay: Nanos) {
        let Some(indices) = self.indices.get(name) else { return };
        for &(id, index) in indices {
            let session = self.sessions.get_mut(&id);
            let Some(topic) = session.and_then(|session| session.topics.get_mut(index)) else {
                continue;
            };
            let was_answered =
                topic.advertised_at.is_some_and(|at| now.saturating_sub(at) < ANSWERED);
            // Rounded: several answers fall due together, and share a frame.
            let due = if delay == 0 { now } else { rounded(now.saturating_add(delay)) };
            // One answer serves many queries; an earlier one is on its way.
            if was_answered || topic.due <= due {
                continue;
            }
            self.topics_due.remove(topic.due, (id, index));
            topic.due = due;
            self.topics_due.put(due, (id, index));
        }
    }

    /// Another resolver queries for all topics that begin with `prefix`. Topics of lanecast itself,
    /// whose names begin with `_`, are not meant unless the prefix does.
    pub(super) fn on_prefix_query(
        &mut self,
        now: Nanos,
        prefix: &str,
        mut delay: impl FnMut() -> Nanos,
    ) {
        let names: Vec<_> = self.beginning_with(prefix).cloned().collect();
        for name in names.iter().filter(|name| prefix.starts_with('_') || !name.starts_with('_')) {
            self.on_query(now, name, delay());
        }
    }

    /// Topics that begin with `prefix`.
    pub(super) fn beginning_with<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = &'a Arc<str>> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let names = self.indices.range::<str, _>(from).map(|(name, _)| name);
        names.take_while(move |name| name.starts_with(prefix))
    }

    /// Time of the next Advert.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        self.topics_due.deadline().into_iter().chain(self.ended_due.deadline()).min()
    }

    /// A session whose end is due to be advertised.
    pub(super) fn next_ended(&self, now: Nanos) -> Option<Announcement> {
        let id = self.ended_due.due(now)?;
        Some(self.ended.get(&id)?.announcement)
    }

    /// A session's end was advertised.
    pub(super) fn on_end_sent(&mut self, now: Nanos, id: u64, rng: &mut Rng) {
        let Some(ended) = self.ended.get_mut(&id) else { return };
        self.ended_due.remove(ended.due, id);
        ended.due = ended.backoff.next(now, rng);
        if ended.backoff.count() < END_ADVERTS {
            self.ended_due.put(ended.due, id);
        } else {
            self.ended.remove(&id);
        }
    }

    /// A topic that is due to be advertised, and its index.
    pub(super) fn next_topic(&self, now: Nanos) -> Option<(Announcement, usize, Arc<str>)> {
        let (id, index) = self.topics_due.due(now)?;
        let session = self.sessions.get(&id)?;
        Some((session.announcement, index, Arc::clone(&session.topics.get(index)?.name)))
    }

    /// A topic was advertised.
    pub(super) fn on_topic_sent(&mut self, now: Nanos, id: u64, index: usize, rng: &mut Rng) {
        let session = self.sessions.get_mut(&id);
        let Some(topic) = session.and_then(|session| session.topics.get_mut(index)) else { return };
        self.topics_due.remove(topic.due, (id, index));
        topic.due = topic.backoff.next(now, rng);
        topic.advertised_at = Some(now);
        self.topics_due.put(topic.due, (id, index));
    }
}
