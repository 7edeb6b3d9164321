//! What others publish of the topics that are wanted here.

use super::announcement::Announcement;
use crate::{Nanos, SECOND};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A session that has closed is not taken for new this long, if it is told by who said so: late
/// Adverts may be on their way. What others say of it counts: who told its end may have lied.
const TOMBSTONE: Nanos = 10 * SECOND;
const TOMBSTONES_MAX: usize = 4_096;
/// A session that the group does not tell of for this long is forgotten.
const FORGOTTEN: Nanos = 30 * SECOND;
/// How often to look for what is to be forgotten.
const SWEEP: Nanos = 5 * SECOND;

/// Sessions, and those of their topics that are wanted: no others are kept.
#[derive(Debug)]
pub(super) struct Known {
    sessions: BTreeMap<u64, Session>,
    topics: usize,
    topics_max: usize,
    /// Session and teller.
    closed: BTreeMap<(u64, u64), Nanos>,
    next_sweep: Nanos,
}

#[derive(Debug)]
struct Session {
    announcement: Announcement,
    /// Who was the first to tell of it in the group, and when it was last heard of there.
    told: Option<(u64, Nanos)>,
    topics: BTreeSet<Arc<str>>,
}

/// Why a topic of a session is not taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotTaken {
    /// The session has closed.
    Closed,
    /// There is no place.
    Full,
}

impl Known {
    pub(super) const fn new(topics_max: usize, now: Nanos) -> Self {
        Self {
            sessions: BTreeMap::new(),
            topics: 0,
            topics_max,
            closed: BTreeMap::new(),
            next_sweep: now.saturating_add(SWEEP),
        }
    }

    /// A session has been heard of in the group.
    pub(super) fn refresh(&mut self, now: Nanos, session: u64, teller: u64) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.told.get_or_insert((teller, now)).1 = now;
        }
    }

    /// Whether the group has not told of a session for so long that it may be forgotten.
    pub(super) fn is_silent(&self, now: Nanos, session: u64) -> bool {
        self.sessions.get(&session).is_some_and(|session| session.is_silent(now))
    }

    /// A session has a topic, says `teller` in the group, or else a daemon; gives what holds of
    /// it: what was heard first, until it is lost.
    pub(super) fn add(
        &mut self,
        now: Nanos,
        announcement: Announcement,
        teller: Option<u64>,
        name: &Arc<str>,
    ) -> Result<Announcement, NotTaken> {
        let id = announcement.session;
        let closed = teller.and_then(|teller| self.closed.get(&(id, teller)));
        if closed.is_some_and(|closed| now.saturating_sub(*closed) < TOMBSTONE) {
            return Err(NotTaken::Closed);
        }
        if self.topics >= self.topics_max {
            return Err(NotTaken::Full);
        }
        let topics = BTreeSet::new();
        let session = self.sessions.entry(id);
        let session = session.or_insert(Session { announcement, told: None, topics });
        self.topics += usize::from(session.topics.insert(Arc::clone(name)));
        let announcement = session.announcement;
        if let Some(teller) = teller {
            self.refresh(now, id, teller);
        }
        Ok(announcement)
    }

    /// What holds of a session.
    pub(super) fn announcement(&self, session: u64) -> Option<Announcement> {
        self.sessions.get(&session).map(|session| session.announcement)
    }

    /// A topic is wanted no longer.
    pub(super) fn remove_topic(&mut self, id: u64, name: &str) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        self.topics -= usize::from(session.topics.remove(name));
        if session.topics.is_empty() {
            self.sessions.remove(&id);
        }
    }

    /// Forgets a session; gives the topics that it had.
    pub(super) fn remove(&mut self, id: u64) -> BTreeSet<Arc<str>> {
        let topics = self.sessions.remove(&id).map(|session| session.topics).unwrap_or_default();
        self.topics -= topics.len();
        topics
    }

    /// A session has closed, says who told of it; gives the topics that it had.
    pub(super) fn close(&mut self, now: Nanos, id: u64, teller: u64) -> Option<BTreeSet<Arc<str>>> {
        let told = self.sessions.get(&id)?.told;
        told.filter(|(first, _)| *first == teller)?;
        if self.closed.len() >= TOMBSTONES_MAX {
            self.closed.pop_first();
        }
        self.closed.insert((id, teller), now);
        Some(self.remove(id))
    }

    /// When to look for what is to be forgotten.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        (!self.sessions.is_empty()).then_some(self.next_sweep)
    }

    /// The sessions that are to be forgotten.
    pub(super) fn sweep(&mut self, now: Nanos) -> Vec<u64> {
        if now < self.next_sweep {
            return Vec::new();
        }
        self.next_sweep = now.saturating_add(SWEEP);
        self.closed.retain(|_, closed| now.saturating_sub(*closed) < TOMBSTONE);
        let silent = self.sessions.iter().filter(|(_, session)| session.is_silent(now));
        silent.map(|(id, _)| *id).collect()
    }
}

impl Session {
    fn is_silent(&self, now: Nanos) -> bool {
        self.told.is_none_or(|(_, heard)| now.saturating_sub(heard) > FORGOTTEN)
    }
}
