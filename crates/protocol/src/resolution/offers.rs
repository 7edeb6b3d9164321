//! What this process publishes.

use super::announcement::Announcement;
use super::schedule::{Pace, Schedule, rounded};
use crate::rng::Rng;
use crate::{MILLISECOND, Nanos};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A Query this soon after an Advert is not answered.
const ANSWERED: Nanos = 5 * MILLISECOND;
/// How often a session's end is told.
const FAREWELLS: u32 = 3;

/// Sessions and their topics, and when to tell them.
#[derive(Debug)]
pub(super) struct Offers {
    sessions: BTreeMap<u64, Session>,
    /// Which sessions have a topic, and the topic's place there.
    places: BTreeMap<Arc<str>, Vec<(u64, usize)>>,
    topics_due: Schedule<(u64, usize)>,
    leaving: BTreeMap<u64, Leaving>,
    leaving_due: Schedule<u64>,
}

#[derive(Debug)]
struct Session {
    announcement: Announcement,
    topics: Vec<Topic>,
}

#[derive(Debug)]
struct Topic {
    name: Arc<str>,
    pace: Pace,
    due: Nanos,
    told: Option<Nanos>,
}

#[derive(Debug)]
struct Leaving {
    announcement: Announcement,
    pace: Pace,
    due: Nanos,
}

impl Offers {
    pub(super) const fn new() -> Self {
        Self {
            sessions: BTreeMap::new(),
            places: BTreeMap::new(),
            topics_due: Schedule::new(),
            leaving: BTreeMap::new(),
            leaving_due: Schedule::new(),
        }
    }

    /// A session has a topic (or another announcement); due at once.
    pub(super) fn add(&mut self, announcement: Announcement, name: &str) {
        let id = announcement.session;
        let session =
            self.sessions.entry(id).or_insert_with(|| Session { announcement, topics: Vec::new() });
        session.announcement = announcement;
        let (name, places) = match self.places.get_key_value(name) {
            Some((name, _)) => (Arc::clone(name), self.places.entry(Arc::clone(name))),
            None => {
                let name = Arc::<str>::from(name);
                (Arc::clone(&name), self.places.entry(name))
            }
        };
        let places = places.or_default();
        if places.iter().any(|(session, _)| *session == id) {
            return;
        }
        let index = session.topics.len();
        places.push((id, index));
        session.topics.push(Topic { name, pace: Pace::default(), due: 0, told: None });
        self.topics_due.put(0, (id, index));
    }

    /// A topic of a session, by its place.
    pub(super) fn topic(&self, id: u64, index: usize) -> Option<(Announcement, &Arc<str>)> {
        let session = self.sessions.get(&id)?;
        Some((session.announcement, &session.topics.get(index)?.name))
    }

    /// The place of a session's topic.
    pub(super) fn place(&self, id: u64, name: &str) -> Option<usize> {
        let place = self.places.get(name)?.iter().find(|(session, _)| *session == id);
        place.map(|(_, index)| *index)
    }

    /// The places of all topics.
    pub(super) fn places(&self) -> impl Iterator<Item = (u64, usize)> {
        let each = |(id, session): (&u64, &Session)| {
            let id = *id;
            (0..session.topics.len()).map(move |index| (id, index))
        };
        self.sessions.iter().flat_map(each)
    }

    /// A session ends; false if there is none.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        let Some(session) = self.sessions.remove(&id) else { return false };
        for (index, topic) in session.topics.iter().enumerate() {
            self.topics_due.remove(topic.due, (id, index));
            if let Some(places) = self.places.get_mut(&topic.name) {
                places.retain(|(session, _)| *session != id);
                if places.is_empty() {
                    self.places.remove(&topic.name);
                }
            }
        }
        let announcement = session.announcement;
        self.leaving.insert(id, Leaving { announcement, pace: Pace::default(), due: 0 });
        self.leaving_due.put(0, id);
        true
    }

    /// Whether the session is this process's own.
    pub(super) fn has(&self, session: u64) -> bool {
        self.sessions.contains_key(&session) || self.leaving.contains_key(&session)
    }

    /// The sessions that have a topic.
    pub(super) fn of(&self, name: &str) -> impl Iterator<Item = Announcement> {
        let places = self.places.get(name).into_iter().flatten();
        places.filter_map(|(id, _)| Some(self.sessions.get(id)?.announcement))
    }

    /// Somebody asks for a topic: it is told after at most `delay`.
    pub(super) fn ask(&mut self, now: Nanos, name: &str, delay: Nanos) {
        let Some(places) = self.places.get(name) else { return };
        for &(id, index) in places {
            let session = self.sessions.get_mut(&id);
            let Some(topic) = session.and_then(|session| session.topics.get_mut(index)) else {
                continue;
            };
            let was_told = topic.told.is_some_and(|told| now.saturating_sub(told) < ANSWERED);
            let due = if delay == 0 { now } else { rounded(now.saturating_add(delay)) };
            if was_told || topic.due <= due {
                continue;
            }
            self.topics_due.remove(topic.due, (id, index));
            topic.due = due;
            self.topics_due.put(due, (id, index));
        }
    }

    /// When the first is due.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        self.topics_due.deadline().into_iter().chain(self.leaving_due.deadline()).min()
    }

    /// A session whose end is to be told.
    pub(super) fn next_leaving(&self, now: Nanos) -> Option<Announcement> {
        let id = self.leaving_due.due(now)?;
        Some(self.leaving.get(&id)?.announcement)
    }

    /// A session's end is told now.
    pub(super) fn told_leaving(&mut self, now: Nanos, id: u64, rng: &mut Rng) {
        let Some(leaving) = self.leaving.get_mut(&id) else { return };
        self.leaving_due.remove(leaving.due, id);
        leaving.due = leaving.pace.next(now, rng);
        if leaving.pace.said() < FAREWELLS {
            self.leaving_due.put(leaving.due, id);
        } else {
            self.leaving.remove(&id);
        }
    }

    /// A topic that is to be told, and its place.
    pub(super) fn next_topic(&self, now: Nanos) -> Option<(Announcement, usize, Arc<str>)> {
        let (id, index) = self.topics_due.due(now)?;
        let session = self.sessions.get(&id)?;
        Some((session.announcement, index, Arc::clone(&session.topics.get(index)?.name)))
    }

    /// A topic is told now.
    pub(super) fn told_topic(&mut self, now: Nanos, id: u64, index: usize, rng: &mut Rng) {
        let session = self.sessions.get_mut(&id);
        let Some(topic) = session.and_then(|session| session.topics.get_mut(index)) else { return };
        self.topics_due.remove(topic.due, (id, index));
        topic.due = topic.pace.next(now, rng);
        topic.told = Some(now);
        self.topics_due.put(topic.due, (id, index));
    }
}
