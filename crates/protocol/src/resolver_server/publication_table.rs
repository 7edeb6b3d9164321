//! What is registered, and who wants it.

use crate::Nanos;
use crate::resolution::Announcement;
use lanecast_wire::net::{AdvertEntry, advert_flag};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Sessions, their topics, and the clients that want these.
#[derive(Debug, Default)]
pub(super) struct PublicationTable {
    names: BTreeMap<Arc<str>, Name>,
    sessions: BTreeMap<u64, Session>,
    owners: BTreeMap<u64, Owner>,
    /// Sessions whose owner is away, and when they are dropped.
    lost: BTreeSet<(Nanos, u64)>,
    entries: usize,
}

#[derive(Debug, Default)]
struct Name {
    publishers: BTreeSet<u64>,
    wanted_by: BTreeSet<u64>,
}

/// A session, as its owner has registered it.
#[derive(Debug)]
pub(super) struct Session {
    announcement: Announcement,
    pub(super) owner: u64,
    pub(super) topics: BTreeSet<Arc<str>>,
    /// When it is dropped, because its owner is away.
    lost: Option<Nanos>,
}

/// A resolver, for as long as it is connected or has sessions.
#[derive(Debug, Default)]
struct Owner {
    client: Option<u64>,
    sessions: BTreeSet<u64>,
    /// Those that it has not told of since it came back.
    stale: BTreeSet<u64>,
    topics: usize,
}

/// What a publisher's name is to those that want it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Published {
    /// They are to be told.
    New(Arc<str>),
    /// They know.
    Known,
}

impl Session {
    /// The entry that tells of it.
    pub(super) fn entry(&self) -> AdvertEntry {
        let flags = if self.lost.is_some() { advert_flag::PERHAPS } else { 0 };
        self.announcement.entry(flags)
    }
}

impl PublicationTable {
    /// How many topics of sessions and wants of clients there are.
    pub(super) const fn entries(&self) -> usize {
        self.entries
    }

    /// How many sessions there are.
    pub(super) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn session(&self, session: u64) -> Option<&Session> {
        self.sessions.get(&session)
    }

    /// The first session from number `from` on.
    pub(super) fn next_session(&self, from: u64) -> Option<(u64, &Session)> {
        self.sessions.range(from..).next().map(|(id, session)| (*id, session))
    }

    /// A resolver is connected; gives its former client, if that is there still.
    pub(super) fn arrive(&mut self, owner: u64, client: u64) -> Option<u64> {
        let owner = self.owners.entry(owner).or_default();
        owner.stale = owner.sessions.clone();
        owner.client.replace(client)
    }

    /// A resolver's connection is gone: its sessions are dropped at `until`. Gives them, unless
    /// the resolver has another connection.
    pub(super) fn leave(&mut self, owner: u64, client: u64, until: Nanos) -> Vec<u64> {
        let Some(it) = self.owners.get_mut(&owner).filter(|it| it.client == Some(client)) else {
            return Vec::new();
        };
        it.client = None;
        let sessions: Vec<u64> = it.sessions.iter().copied().collect();
        if sessions.is_empty() {
            self.owners.remove(&owner);
        }
        for id in &sessions {
            if let Some(session) = self.sessions.get_mut(id)
                && session.lost.is_none()
            {
                session.lost = Some(until);
                self.lost.insert((until, *id));
            }
        }
        sessions
    }

    /// A resolver has told all that it has; gives the sessions that it had before and has not
    /// told again.
    pub(super) fn settle(&mut self, owner: u64) -> BTreeSet<u64> {
        self.owners.get_mut(&owner).map(|it| std::mem::take(&mut it.stale)).unwrap_or_default()
    }

    /// How many topics a resolver publishes.
    pub(super) fn topics_of(&self, owner: u64) -> usize {
        self.owners.get(&owner).map_or(0, |it| it.topics)
    }

    /// Whether a session is another resolver's.
    pub(super) fn is_foreign(&self, owner: u64, session: u64) -> bool {
        self.sessions.get(&session).is_some_and(|session| session.owner != owner)
    }

    /// Whether a session has a topic.
    pub(super) fn has(&self, session: u64, name: &str) -> bool {
        self.sessions.get(&session).is_some_and(|session| session.topics.contains(name))
    }

    /// A session that its owner tells of again; gives whether it was thought to be lost.
    pub(super) fn confirm(&mut self, announcement: Announcement) -> bool {
        let id = announcement.session;
        let Some(session) = self.sessions.get_mut(&id) else { return false };
        session.announcement = announcement;
        if let Some(owner) = self.owners.get_mut(&session.owner) {
            owner.stale.remove(&id);
        }
        let lost = session.lost.take();
        lost.is_some_and(|until| self.lost.remove(&(until, id)))
    }

    /// A session has a topic.
    pub(super) fn publish(
        &mut self,
        owner: u64,
        announcement: Announcement,
        name: &str,
    ) -> Published {
        let id = announcement.session;
        let name = self.intern(name);
        let topics = BTreeSet::new();
        let session =
            self.sessions.entry(id).or_insert(Session { announcement, owner, topics, lost: None });
        if !session.topics.insert(Arc::clone(&name)) {
            return Published::Known;
        }
        self.entries += 1;
        let owner = self.owners.entry(owner).or_default();
        owner.sessions.insert(id);
        owner.topics += 1;
        self.names.entry(Arc::clone(&name)).or_default().publishers.insert(id);
        Published::New(name)
    }

    /// Drops a session; gives the clients that want one of its topics.
    pub(super) fn drop_session(&mut self, id: u64) -> BTreeSet<u64> {
        let concerned = self.concerned(id);
        let Some(session) = self.sessions.remove(&id) else { return concerned };
        if let Some(until) = session.lost {
            self.lost.remove(&(until, id));
        }
        self.entries -= session.topics.len();
        if let Some(owner) = self.owners.get_mut(&session.owner) {
            owner.sessions.remove(&id);
            owner.stale.remove(&id);
            owner.topics -= session.topics.len();
            if owner.sessions.is_empty() && owner.client.is_none() {
                self.owners.remove(&session.owner);
            }
        }
        for name in &session.topics {
            self.change(name, |it| it.publishers.remove(&id));
        }
        concerned
    }

    /// The clients that want a topic of a session.
    pub(super) fn concerned(&self, session: u64) -> BTreeSet<u64> {
        let topics = self.sessions.get(&session).into_iter().flat_map(|session| &session.topics);
        topics.flat_map(|name| self.wanted_by(name)).collect()
    }

    /// The session that is dropped next because its owner is away, and when.
    pub(super) fn next_lost(&self) -> Option<(Nanos, u64)> {
        self.lost.first().copied()
    }

    /// A client wants a name.
    pub(super) fn subscribe(&mut self, client: u64, name: &str) -> Arc<str> {
        let name = self.intern(name);
        let it = self.names.entry(Arc::clone(&name)).or_default();
        self.entries += usize::from(it.wanted_by.insert(client));
        name
    }

    /// A client wants a name no longer.
    pub(super) fn unsubscribe(&mut self, client: u64, name: &str) {
        if self.change(name, |it| it.wanted_by.remove(&client)) {
            self.entries -= 1;
        }
    }

    /// The sessions that have a topic.
    pub(super) fn publishers(&self, name: &str) -> impl Iterator<Item = u64> {
        self.names.get(name).into_iter().flat_map(|it| it.publishers.iter().copied())
    }

    /// The clients that want a topic.
    pub(super) fn wanted_by(&self, name: &str) -> impl Iterator<Item = u64> {
        self.names.get(name).into_iter().flat_map(|it| it.wanted_by.iter().copied())
    }

    /// One text for all that speak of a topic.
    fn intern(&self, name: &str) -> Arc<str> {
        self.names.get_key_value(name).map_or_else(|| Arc::from(name), |(name, _)| Arc::clone(name))
    }

    /// Changes what is known of a name, and forgets the name if that is nothing any more.
    fn change(&mut self, name: &str, how: impl FnOnce(&mut Name) -> bool) -> bool {
        let Some(it) = self.names.get_mut(name) else { return false };
        let changed = how(it);
        if it.publishers.is_empty() && it.wanted_by.is_empty() {
            self.names.remove(name);
        }
        changed
    }
}
