//! Publications registered at the resolver server, and their subscribers.

use crate::Nanos;
use crate::resolution::Announcement;
use lanecast_wire::net::{AdvertEntry, advert_flag};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// Sessions, their topics, and the clients subscribed to them.
#[derive(Debug, Default)]
pub(super) struct PublicationTable {
    names: BTreeMap<Arc<str>, TopicEntry>,
    /// Clients subscribed to all topics with a prefix.
    prefixes: BTreeMap<Arc<str>, BTreeSet<u64>>,
    sessions: BTreeMap<u64, Session>,
    owners: BTreeMap<u64, Owner>,
    /// Sessions whose resolver is disconnected, by the time when they are dropped.
    lost: BTreeSet<(Nanos, u64)>,
    entries: usize,
    /// Lookups of prefixes.
    #[cfg(test)]
    lookups: std::cell::Cell<usize>,
}

#[derive(Debug, Default)]
struct TopicEntry {
    publishers: BTreeSet<u64>,
    subscribers: BTreeSet<u64>,
}

/// A registered session.
#[derive(Debug)]
pub(super) struct Session {
    announcement: Announcement,
    pub(super) owner: u64,
    pub(super) topics: BTreeSet<Arc<str>>,
    /// Time when it is dropped, while its resolver is disconnected.
    lost: Option<Nanos>,
}

/// A resolver that is connected or has sessions.
#[derive(Debug, Default)]
struct Owner {
    client: Option<u64>,
    /// Sessions registered by its connection.
    fresh: BTreeSet<u64>,
    /// Sessions of a replaced connection, not registered again.
    stale: BTreeSet<u64>,
    /// Sessions of connections that ended, not registered again.
    lost: BTreeSet<u64>,
    topics: usize,
}

impl Owner {
    fn has_sessions(&self) -> bool {
        !(self.fresh.is_empty() && self.stale.is_empty() && self.lost.is_empty())
    }

    fn remove(&mut self, session: u64) {
        for sessions in [&mut self.fresh, &mut self.stale, &mut self.lost] {
            sessions.remove(&session);
        }
    }
}

/// Result of registering a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Published {
    /// Subscribers are to be notified.
    New(Arc<str>),
    /// Registered before.
    Known,
}

impl Session {
    /// Entry of the session's announcement.
    pub(super) fn entry(&self) -> AdvertEntry {
        let flags = if self.lost.is_some() { advert_flag::PERHAPS } else { 0 };
        self.announcement.entry(flags)
    }
}

impl PublicationTable {
    /// Number of publications and subscriptions.
    pub(super) const fn entries(&self) -> usize {
        self.entries
    }

    /// Number of sessions.
    pub(super) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn session(&self, session: u64) -> Option<&Session> {
        self.sessions.get(&session)
    }

    /// First session from number `from` on.
    pub(super) fn next_session(&self, from: u64) -> Option<(u64, &Session)> {
        self.sessions.range(from..).next().map(|(id, session)| (*id, session))
    }

    /// A resolver has connected; returns its former client if that is still connected.
    pub(super) fn connect(&mut self, owner: u64, client: u64) -> Option<u64> {
        let owner = self.owners.entry(owner).or_default();
        // All are in doubt until the resolver registers them again or sends its SYNC.
        owner.stale.extend(std::mem::take(&mut owner.fresh));
        owner.client.replace(client)
    }

    /// A resolver has disconnected: its sessions are dropped at `until`. Returns them, unless the
    /// resolver has another connection. Those of earlier connections are lost already: they are
    /// not looked at, or a resolver could have all looked up by each short connection.
    pub(super) fn disconnect(&mut self, owner: u64, client: u64, until: Nanos) -> Vec<u64> {
        // An old connection that ends late must not take the new one's sessions.
        let Some(it) = self.owners.get_mut(&owner).filter(|it| it.client == Some(client)) else {
            return Vec::new();
        };
        it.client = None;
        let stale = std::mem::take(&mut it.stale);
        let sessions: Vec<u64> = std::mem::take(&mut it.fresh).into_iter().chain(stale).collect();
        it.lost.extend(&sessions);
        if !it.has_sessions() {
            self.owners.remove(&owner);
        }
        for id in &sessions {
            // The first loss counts: a client that reconnects without registering gains no time.
            if let Some(session) = self.sessions.get_mut(id) {
                session.lost = Some(until);
                self.lost.insert((until, *id));
            }
        }
        sessions
    }

    /// A resolver has registered everything; returns the former sessions that it has not registered
    /// again.
    pub(super) fn end_sync(&mut self, owner: u64) -> BTreeSet<u64> {
        let Some(it) = self.owners.get_mut(&owner) else { return BTreeSet::new() };
        let mut former = std::mem::take(&mut it.stale);
        former.append(&mut it.lost);
        former
    }

    /// Number of topics that a resolver publishes.
    pub(super) fn topics_of(&self, owner: u64) -> usize {
        self.owners.get(&owner).map_or(0, |it| it.topics)
    }

    /// Whether a session belongs to another resolver.
    pub(super) fn is_foreign(&self, owner: u64, session: u64) -> bool {
        self.sessions.get(&session).is_some_and(|session| session.owner != owner)
    }

    /// Whether a session has a topic.
    pub(super) fn has(&self, session: u64, name: &str) -> bool {
        self.sessions.get(&session).is_some_and(|session| session.topics.contains(name))
    }

    /// A session is registered again; returns whether it was lost.
    pub(super) fn refresh(&mut self, announcement: Announcement) -> bool {
        let id = announcement.session;
        let Some(session) = self.sessions.get_mut(&id) else { return false };
        session.announcement = announcement;
        if let Some(owner) = self.owners.get_mut(&session.owner) {
            owner.remove(id);
            owner.fresh.insert(id);
        }
        let lost = session.lost.take();
        lost.is_some_and(|until| self.lost.remove(&(until, id)))
    }

    /// Registers a topic of a session.
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
        owner.fresh.insert(id);
        owner.topics += 1;
        self.names.entry(Arc::clone(&name)).or_default().publishers.insert(id);
        Published::New(name)
    }

    /// Removes a session; returns the subscribers of its topics.
    pub(super) fn remove_session(&mut self, id: u64) -> BTreeSet<u64> {
        let subscribers = self.subscribers(id);
        let Some(session) = self.sessions.remove(&id) else { return subscribers };
        if let Some(until) = session.lost {
            self.lost.remove(&(until, id));
        }
        self.entries -= session.topics.len();
        if let Some(owner) = self.owners.get_mut(&session.owner) {
            owner.remove(id);
            owner.topics -= session.topics.len();
            // Kept while either remains: numbers of former resolvers must not pile up.
            if !owner.has_sessions() && owner.client.is_none() {
                self.owners.remove(&session.owner);
            }
        }
        for name in &session.topics {
            self.change(name, |it| it.publishers.remove(&id));
        }
        subscribers
    }

    /// Subscribers of the topics of a session.
    pub(super) fn subscribers(&self, session: u64) -> BTreeSet<u64> {
        let Some(Session { topics, .. }) = self.sessions.get(&session) else {
            return BTreeSet::new();
        };
        let named = topics.iter().filter_map(|name| self.names.get(name));
        let mut subscribers: BTreeSet<u64> =
            named.flat_map(|it| &it.subscribers).copied().collect();
        // By fewer lookups: of each prefix among the topics, or of each topic's among the prefixes.
        let lookups: usize = topics.iter().map(|name| name.len() + 1).sum();
        if self.prefixes.len() < lookups {
            for (prefix, clients) in &self.prefixes {
                self.count_lookup();
                let range = (Bound::Included(&**prefix), Bound::Unbounded);
                let first = topics.range::<str, _>(range).next();
                if first.is_some_and(|name| name.starts_with(&**prefix)) {
                    subscribers.extend(clients);
                }
            }
        } else {
            topics.iter().for_each(|name| subscribers.extend(self.subscribers_by_prefix(name)));
        }
        subscribers
    }

    /// Next lost session to drop, and the time.
    pub(super) fn next_lost(&self) -> Option<(Nanos, u64)> {
        self.lost.first().copied()
    }

    /// Adds a subscriber to a topic.
    pub(super) fn subscribe(&mut self, client: u64, name: &str) -> Arc<str> {
        let name = self.intern(name);
        let it = self.names.entry(Arc::clone(&name)).or_default();
        self.entries += usize::from(it.subscribers.insert(client));
        name
    }

    /// Removes a subscriber from a topic.
    pub(super) fn unsubscribe(&mut self, client: u64, name: &str) {
        if self.change(name, |it| it.subscribers.remove(&client)) {
            self.entries -= 1;
        }
    }

    /// Sessions that publish a topic.
    pub(super) fn publishers(&self, name: &str) -> impl Iterator<Item = u64> {
        self.names.get(name).into_iter().flat_map(|it| it.publishers.iter().copied())
    }

    /// Clients subscribed to a topic, by its name or by a prefix of it.
    pub(super) fn subscribers_of(&self, name: &str) -> BTreeSet<u64> {
        let named = self.names.get(name).into_iter().flat_map(|it| &it.subscribers);
        named.copied().chain(self.subscribers_by_prefix(name)).collect()
    }

    /// Clients subscribed to a prefix of a name.
    fn subscribers_by_prefix(&self, name: &str) -> impl Iterator<Item = u64> {
        // As many lookups as the name has bytes, however many prefixes there are.
        let ends = if self.prefixes.is_empty() { 0..0 } else { 0..name.len() + 1 };
        let prefixes = ends.filter_map(move |end| {
            self.count_lookup();
            self.prefixes.get(name.get(..end)?)
        });
        prefixes.flatten().copied()
    }

    fn count_lookup(&self) {
        #[cfg(test)]
        self.lookups.set(self.lookups.get() + 1);
    }

    /// Adds a subscriber to all topics with a prefix.
    pub(super) fn subscribe_prefix(&mut self, client: u64, prefix: &str) -> Arc<str> {
        let known = self.prefixes.get_key_value(prefix).map(|(prefix, _)| Arc::clone(prefix));
        let prefix = known.unwrap_or_else(|| Arc::from(prefix));
        let clients = self.prefixes.entry(Arc::clone(&prefix)).or_default();
        self.entries += usize::from(clients.insert(client));
        prefix
    }

    /// Removes a subscriber from all topics with a prefix.
    pub(super) fn unsubscribe_prefix(&mut self, client: u64, prefix: &str) {
        let Some(clients) = self.prefixes.get_mut(prefix) else { return };
        self.entries -= usize::from(clients.remove(&client));
        if clients.is_empty() {
            self.prefixes.remove(prefix);
        }
    }

    /// The first published topic with a prefix from the name `from` on, and the topic's sessions.
    pub(super) fn next_topic(
        &self,
        prefix: &str,
        from: Bound<&str>,
    ) -> Option<(&Arc<str>, impl Iterator<Item = u64>)> {
        let (name, it) = self.names.range::<str, _>((from, Bound::Unbounded)).next()?;
        name.starts_with(prefix).then(|| (name, it.publishers.iter().copied()))
    }

    /// Returns the shared copy of a topic's name.
    fn intern(&self, name: &str) -> Arc<str> {
        self.names.get_key_value(name).map_or_else(|| Arc::from(name), |(name, _)| Arc::clone(name))
    }

    /// Changes a topic, and removes it if it has neither publishers nor subscribers.
    fn change(&mut self, name: &str, edit: impl FnOnce(&mut TopicEntry) -> bool) -> bool {
        let Some(it) = self.names.get_mut(name) else { return false };
        let changed = edit(it);
        // Names of the past must not pile up.
        if it.publishers.is_empty() && it.subscribers.is_empty() {
            self.names.remove(name);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolution::SessionTransport;
    use std::net::SocketAddr;

    const CLIENT: u64 = 9;

    fn table(topics: &[String], prefixes: &[&str]) -> PublicationTable {
        let mut table = PublicationTable::default();
        let announcement = Announcement {
            session: 1,
            transport: SessionTransport::Unicast,
            control: SocketAddr::from(([10, 0, 0, 1], 9)),
            group: None,
            host: 0,
            domain: 0,
            pid: 0,
            datagram_bytes: 1_400,
        };
        for topic in topics {
            let _ = table.publish(5, announcement, topic);
        }
        for (number, prefix) in (CLIENT..).zip(prefixes) {
            table.subscribe_prefix(number, prefix);
        }
        table
    }

    #[test]
    fn few_prefixes_are_looked_up_among_many_topics() {
        let topics: Vec<String> =
            (0..1_000).map(|number| format!("{number:04}{}", "x".repeat(200))).collect();
        let table = table(&topics, &["05", "1", "0999x", "", "0999y", "00000"]);
        let subscribers = BTreeSet::from([CLIENT, CLIENT + 2, CLIENT + 3]);
        assert_eq!(table.subscribers(1), subscribers);
        assert_eq!(table.lookups.get(), 6);
        let each = topics.iter().flat_map(|topic| table.subscribers_of(topic));
        assert_eq!(each.collect::<BTreeSet<u64>>(), subscribers);
    }

    #[test]
    fn a_connection_that_registers_nothing_costs_nothing_when_it_ends() {
        let mut table = table(&["a".to_owned()], &["a"]);
        assert_eq!(table.connect(5, 1), None);
        assert_eq!(table.connect(5, 2), Some(1), "replaced");
        assert_eq!(table.disconnect(5, 1, 10), [], "late");
        assert_eq!(table.disconnect(5, 2, 20), [1]);
        for client in 3..10 {
            assert_eq!(table.connect(5, client), None);
            assert_eq!(table.disconnect(5, client, 20 + client), []);
        }
        assert_eq!(table.next_lost(), Some((20, 1)), "the first loss counts");
        table.connect(5, 10);
        let announcement = table.sessions[&1].announcement;
        assert!(table.refresh(announcement), "was lost");
        assert!(table.end_sync(5).is_empty());
        assert_eq!(table.disconnect(5, 10, 90), [1]);
        table.connect(5, 11);
        assert_eq!(table.end_sync(5), BTreeSet::from([1]));
        table.disconnect(5, 11, 99);
        let subscribers = table.remove_session(1);
        assert_eq!((subscribers, table.owners.len()), (BTreeSet::from([CLIENT]), 0));
    }

    #[test]
    fn few_topics_are_looked_up_among_many_prefixes() {
        let prefixes: Vec<String> = (0..1_000).map(|number| format!("p{number}")).collect();
        let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        let table = table(&["p123".to_owned(), "q".to_owned()], &prefixes);
        let subscribers = [1, 12, 123].map(|number| CLIENT + number);
        assert_eq!(table.subscribers(1), BTreeSet::from(subscribers));
        assert_eq!(table.lookups.get(), "p123".len() + 1 + "q".len() + 1);
    }
}
