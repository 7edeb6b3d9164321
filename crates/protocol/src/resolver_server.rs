//! Resolver server: the state machine of the daemon that resolvers connect to where multicast is
//! not available. See `docs/protocol/resolution.md`.
//!
//! Each client registers the topics it publishes and subscribes to (`client`), and gets only the
//! publications that it subscribes to (`table`). Nothing is stored: clients register
//! again after a restart. Registration says nothing about a publisher's liveness.

mod client;
mod publication_table;

pub use crate::resolution::RejectReason;
pub use crate::resolution::session_constants::FRAME_MIN;

use crate::resolution::Announcement;
use crate::resolution::session_constants::SETTLE;
use crate::{Nanos, SECOND};
use client::Client;
use lanecast_wire::net::{
    AdvertEntry, EjectBody, Frame, FrameWriter, Kind, NAME_MAX, Names, advert_flag, adverts, names,
    query_flag,
};
use publication_table::{PublicationTable, Published};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

/// Most clients that have sent no frame yet, beside [`ResolverServerSettings::clients_max`].
pub const UNIDENTIFIED_MAX: usize = 64;

/// Configuration of a [`ResolverServer`].
#[derive(Clone, Debug)]
pub struct ResolverServerSettings {
    /// Random number of the daemon, distinct from those of all resolvers.
    pub daemon: u64,
    /// Most clients whose resolver is known.
    pub clients_max: usize,
    /// Most topics that a client may publish, and most that it may subscribe to.
    pub client_topics_max: usize,
    /// Most prefixes of topics that a client may subscribe to.
    pub client_prefixes_max: usize,
    /// Most publications and subscriptions of all clients.
    pub topics_max: usize,
    /// Most publications queued for a client that reads slowly.
    pub queued_max: usize,
    /// Time for which the sessions of a disconnected client are kept.
    pub grace: Nanos,
}

impl Default for ResolverServerSettings {
    fn default() -> Self {
        Self {
            daemon: 0,
            clients_max: 512,
            client_topics_max: 1 << 16,
            client_prefixes_max: 1 << 10,
            topics_max: 1 << 19,
            queued_max: 1 << 17,
            grace: 60 * SECOND,
        }
    }
}

/// Counts of a resolver server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResolverServerCounters {
    /// Clients that connected.
    pub connected: u64,
    /// Clients that disconnected, for any reason.
    pub disconnected: u64,
    /// Clients that were rejected or whose connection was closed by the server.
    pub rejected: u64,
    /// Frames received.
    pub frames: u64,
    /// Rejected clients that sent a malformed frame.
    pub malformed: u64,
    /// Malformed entries.
    pub malformed_entries: u64,
    /// Entries of sessions registered by another resolver.
    pub foreign: u64,
    /// Publications registered.
    pub registered: u64,
    /// Entries and names sent to clients.
    pub sent: u64,
    /// Sessions dropped because their client did not reconnect.
    pub expired: u64,
}

/// A client whose connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectedClient {
    /// Number of the client.
    pub client: u64,
    /// Address of the client.
    pub from: SocketAddr,
    /// Resolver of the client; 0 if unknown.
    pub resolver: u64,
    /// Reason.
    pub why: RejectReason,
}

/// State of a resolver server.
#[derive(Debug)]
pub struct ResolverServer {
    settings: ResolverServerSettings,
    /// Time from which `SYNC` is answered.
    settled: Nanos,
    clients: BTreeMap<u64, Client>,
    last: u64,
    table: PublicationTable,
    rejected: VecDeque<RejectedClient>,
    counters: ResolverServerCounters,
}

impl ResolverServer {
    /// Creates a server without clients.
    pub fn new(settings: ResolverServerSettings, now: Nanos) -> Self {
        Self {
            settings,
            settled: now.saturating_add(SETTLE),
            clients: BTreeMap::new(),
            last: 0,
            table: PublicationTable::default(),
            rejected: VecDeque::new(),
            counters: ResolverServerCounters::default(),
        }
    }

    /// Adds a client; returns its number.
    ///
    /// # Errors
    /// [`RejectReason::Full`].
    pub fn connect(&mut self, now: Nanos, from: SocketAddr) -> Result<u64, RejectReason> {
        if self.clients.len() >= self.settings.clients_max + UNIDENTIFIED_MAX {
            self.counters.rejected += 1;
            return Err(RejectReason::Full);
        }
        self.last += 1;
        self.counters.connected += 1;
        self.clients.insert(self.last, Client::new(now, from));
        Ok(self.last)
    }

    /// Removes a client whose connection is closed.
    pub fn disconnect(&mut self, now: Nanos, client: u64) {
        let Some(it) = self.clients.remove(&client) else { return };
        self.counters.disconnected += 1;
        // Subscriptions end at once; sessions wait for their resolver to come back.
        it.subscriptions.iter().for_each(|name| self.table.unsubscribe(client, name));
        it.prefixes.iter().for_each(|prefix| self.table.unsubscribe_prefix(client, prefix));
        let Some(resolver) = it.resolver else { return };
        let until = now.saturating_add(self.settings.grace);
        for session in self.table.disconnect(resolver, client, until) {
            let subscribers = self.table.subscribers(session);
            self.notify_change(now, session, subscribers);
        }
    }

    /// Removes a client; [`next_rejected`](Self::next_rejected) returns it, to close its
    /// connection.
    pub fn reject(&mut self, now: Nanos, client: u64, why: RejectReason) {
        let Some(it) = self.clients.get(&client) else { return };
        let resolver = it.resolver.unwrap_or(0);
        // Before the client goes: its address and resolver are still known.
        self.rejected.push_back(RejectedClient { client, from: it.from, resolver, why });
        self.counters.rejected += 1;
        self.counters.malformed +=
            u64::from(matches!(why, RejectReason::Malformed | RejectReason::OtherVersion(_)));
        self.disconnect(now, client);
    }

    /// Removes a client that sends no frames at all, and counts it as rejected; returns its
    /// address. The caller closes the connection: the client would read no Eject.
    pub fn refuse(&mut self, now: Nanos, client: u64) -> Option<SocketAddr> {
        let from = self.clients.get(&client)?.from;
        self.counters.rejected += 1;
        self.counters.malformed += 1;
        self.disconnect(now, client);
        Some(from)
    }

    /// Next client whose connection is to be closed.
    pub fn next_rejected(&mut self) -> Option<RejectedClient> {
        self.rejected.pop_front()
    }

    /// Writes the Eject that tells a client why its connection is closed.
    ///
    /// # Panics
    /// If the buffer is shorter than [`FRAME_MIN`].
    pub fn write_eject(&self, resolver: u64, why: RejectReason, buffer: &mut [u8]) -> usize {
        assert!(buffer.len() >= FRAME_MIN, "a buffer of at least {FRAME_MIN} bytes");
        let daemon = self.settings.daemon;
        let mut writer = FrameWriter::new(buffer, Kind::Eject, why.flag(), daemon, 0);
        let added = writer.add(&EjectBody { receiver: resolver.into() });
        debug_assert!(added, "it fits");
        writer.finish()
    }

    /// Handles a frame of a client.
    pub fn on_frame(&mut self, now: Nanos, client: u64, frame: &Frame<'_>) {
        if !self.clients.contains_key(&client) {
            return;
        }
        self.counters.frames += 1;
        if let Err(why) = self.handle(now, client, frame) {
            self.reject(now, client, why);
        }
    }

    /// Writes the next frame for a client into `buffer`; returns its length. Call again until
    /// `None`, whenever the connection has room.
    ///
    /// # Panics
    /// If the buffer is shorter than [`FRAME_MIN`].
    pub fn next_frame(&mut self, now: Nanos, client: u64, buffer: &mut [u8]) -> Option<usize> {
        assert!(buffer.len() >= FRAME_MIN, "a buffer of at least {FRAME_MIN} bytes");
        let it = self.clients.get_mut(&client)?;
        let daemon = self.settings.daemon;
        let (length, sent) = it.next_frame(now, self.settled, daemon, &self.table, buffer)?;
        self.counters.sent += sent as u64;
        Some(length)
    }

    /// Drops sessions whose client did not reconnect, and rejects silent clients.
    pub fn on_time(&mut self, now: Nanos) {
        while let Some((until, session)) = self.table.next_lost()
            && until <= now
        {
            self.counters.expired += 1;
            self.remove_session(now, session);
        }
        let silent = self.clients.iter().filter(|(_, client)| client.is_silent(now));
        let silent: Vec<u64> = silent.map(|(id, _)| *id).collect();
        silent.into_iter().for_each(|client| self.reject(now, client, RejectReason::Silent));
    }

    /// Latest time of the next call of [`on_time`](Self::on_time) and
    /// [`next_frame`](Self::next_frame).
    pub fn next_deadline(&self) -> Option<Nanos> {
        let clients = self.clients.values().map(|client| client.deadline(self.settled));
        clients.chain(self.table.next_lost().map(|(until, _)| until)).min()
    }

    /// Whether a client is connected and not rejected.
    pub fn is_connected(&self, client: u64) -> bool {
        self.clients.contains_key(&client)
    }

    /// Address of a connected client.
    pub fn address(&self, client: u64) -> Option<SocketAddr> {
        self.clients.get(&client).map(|it| it.from)
    }

    /// Clients that have sent no frame yet, and their addresses; the oldest first.
    pub fn unidentified(&self) -> impl Iterator<Item = (u64, SocketAddr)> {
        let unidentified = self.clients.iter().filter(|(_, client)| client.resolver.is_none());
        unidentified.map(|(number, client)| (*number, client.from))
    }

    /// Number of clients.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Number of registered sessions.
    pub fn sessions(&self) -> usize {
        self.table.sessions()
    }

    /// Number of publications and subscriptions.
    pub const fn topics(&self) -> usize {
        self.table.entries()
    }

    /// Counts so far.
    pub const fn counters(&self) -> &ResolverServerCounters {
        &self.counters
    }

    fn handle(&mut self, now: Nanos, client: u64, frame: &Frame<'_>) -> Result<(), RejectReason> {
        let resolver = self.identify(now, client, frame.session)?;
        match frame.kind {
            Kind::Advert if adverts(frame.body).is_whole() => {
                for (entry, topics) in adverts(frame.body) {
                    self.on_entry(now, client, resolver, entry, topics)?;
                }
                Ok(())
            }
            Kind::Query if names(frame.body).is_whole() => {
                self.on_query(now, client, resolver, frame)
            }
            _ => Err(RejectReason::Malformed),
        }
    }

    /// Identifies the resolver of a client, which is always the same.
    fn identify(&mut self, now: Nanos, client: u64, resolver: u64) -> Result<u64, RejectReason> {
        let it = self.clients.get_mut(&client).ok_or(RejectReason::Silent)?;
        it.on_heard(now);
        match it.resolver {
            Some(known) if known == resolver => return Ok(resolver),
            // One connection, one resolver: sessions are owned by the resolver's number.
            Some(_) => return Err(RejectReason::Malformed),
            None if resolver == 0 || resolver == self.settings.daemon => {
                return Err(RejectReason::Malformed);
            }
            None => {}
        }
        // The resolver's former connection does not count: it is replaced.
        let others = self.clients.values().filter_map(|it| it.resolver);
        if others.filter(|other| *other != resolver).count() >= self.settings.clients_max {
            return Err(RejectReason::Full);
        }
        let it = self.clients.get_mut(&client).ok_or(RejectReason::Silent)?;
        it.resolver = Some(resolver);
        // The resolver's former connection may be half-open: the new one replaces it.
        if let Some(former) = self.table.connect(resolver, client) {
            self.reject(now, former, RejectReason::Replaced);
        }
        Ok(resolver)
    }

    fn on_entry(
        &mut self,
        now: Nanos,
        client: u64,
        resolver: u64,
        entry: &AdvertEntry,
        mut topics: Names<'_>,
    ) -> Result<(), RejectReason> {
        let session = entry.session.get();
        // The first owner keeps it: a client cannot end or redirect another's session.
        if self.table.is_foreign(resolver, session) {
            self.counters.foreign += 1;
            return Ok(());
        }
        if entry.flags & advert_flag::GONE != 0 {
            self.remove_session(now, session);
            return Ok(());
        }
        let from = self.clients.get(&client).map(|it| it.from);
        let Some(announcement) = from.and_then(|from| Announcement::read(entry, from)) else {
            self.counters.malformed_entries += 1;
            return Ok(());
        };
        // Was lost, and is back: subscribers learn that it is certain again.
        if self.table.refresh(announcement) {
            let subscribers = self.table.subscribers(session);
            self.notify_change(now, session, subscribers);
        }
        topics.try_for_each(|topic| self.publish(now, (client, resolver), announcement, topic))
    }

    fn publish(
        &mut self,
        now: Nanos,
        (client, resolver): (u64, u64),
        announcement: Announcement,
        topic: &str,
    ) -> Result<(), RejectReason> {
        let session = announcement.session;
        check(topic)?;
        if self.table.has(session, topic) {
            return Ok(());
        }
        if self.table.topics_of(resolver) >= self.settings.client_topics_max {
            return Err(RejectReason::TooManyTopics);
        }
        self.make_room(now, client)?;
        let Published::New(name) = self.table.publish(resolver, announcement, topic) else {
            return Ok(());
        };
        self.counters.registered += 1;
        let mut slow = Vec::new();
        for id in self.table.subscribers_of(&name) {
            let client = self.clients.get_mut(&id);
            if client.is_some_and(|it| it.queue(session, &name) > self.settings.queued_max) {
                slow.push(id);
            }
        }
        // After the loop, which reads the table that a rejection changes.
        slow.into_iter().for_each(|id| self.reject(now, id, RejectReason::SlowConsumer));
        Ok(())
    }

    fn on_query(
        &mut self,
        now: Nanos,
        client: u64,
        resolver: u64,
        frame: &Frame<'_>,
    ) -> Result<(), RejectReason> {
        let of_prefixes = frame.flags & query_flag::PREFIXES != 0;
        for topic in names(frame.body) {
            check(topic)?;
            if of_prefixes {
                let prefix = topic.strip_suffix('*').ok_or(RejectReason::Malformed)?;
                self.on_prefix_query(now, client, prefix, frame.flags)?;
            } else if frame.flags & query_flag::WITHDRAW == 0 {
                self.subscribe(now, client, topic)?;
            } else if self.clients.get_mut(&client).is_some_and(|it| it.withdraw(topic)) {
                self.table.unsubscribe(client, topic);
            }
        }
        let Some(it) = self.clients.get_mut(&client) else { return Ok(()) };
        if frame.flags & query_flag::ALL != 0 {
            it.on_query_all();
        }
        if frame.flags & query_flag::SYNC != 0 {
            it.on_sync();
            // Sessions that the client has not registered again since it reconnected have ended.
            for session in self.table.end_sync(resolver) {
                self.remove_session(now, session);
            }
        }
        Ok(())
    }

    fn subscribe(&mut self, now: Nanos, client: u64, topic: &str) -> Result<(), RejectReason> {
        let subscriptions = self.clients.get(&client).map(|it| &it.subscriptions);
        if !subscriptions.is_some_and(|subscriptions| subscriptions.contains(topic)) {
            if subscriptions
                .is_some_and(|subscriptions| subscriptions.len() >= self.settings.client_topics_max)
            {
                return Err(RejectReason::TooManyTopics);
            }
            self.make_room(now, client)?;
        }
        let name = self.table.subscribe(client, topic);
        if let Some(it) = self.clients.get_mut(&client) {
            it.subscriptions.insert(Arc::clone(&name));
            it.on_query(name);
        }
        Ok(())
    }

    /// A client queries for all topics with a prefix, or withdraws that.
    fn on_prefix_query(
        &mut self,
        now: Nanos,
        client: u64,
        prefix: &str,
        flags: u16,
    ) -> Result<(), RejectReason> {
        let Some(it) = self.clients.get_mut(&client) else { return Ok(()) };
        if flags & query_flag::WITHDRAW != 0 {
            if it.withdraw_prefix(prefix) {
                self.table.unsubscribe_prefix(client, prefix);
            }
            return Ok(());
        }
        if !it.prefixes.contains(prefix) {
            if it.prefixes.len() >= self.settings.client_prefixes_max {
                return Err(RejectReason::TooManyTopics);
            }
            self.make_room(now, client)?;
        }
        let prefix = self.table.subscribe_prefix(client, prefix);
        if let Some(it) = self.clients.get_mut(&client) {
            it.prefixes.insert(Arc::clone(&prefix));
            it.on_prefix_query(prefix);
        }
        Ok(())
    }

    /// Makes room for a topic of `client`: drops sessions of disconnected clients if necessary.
    fn make_room(&mut self, now: Nanos, client: u64) -> Result<(), RejectReason> {
        while self.table.entries() >= self.settings.topics_max {
            let (_, session) = self.table.next_lost().ok_or(RejectReason::Full)?;
            self.counters.expired += 1;
            self.remove_session(now, session);
        }
        // Of the dropped sessions it may have been told once too often.
        if self.clients.contains_key(&client) { Ok(()) } else { Err(RejectReason::SlowConsumer) }
    }

    fn remove_session(&mut self, now: Nanos, session: u64) {
        let subscribers = self.table.remove_session(session);
        self.notify_change(now, session, subscribers);
    }

    fn notify_change(&mut self, now: Nanos, session: u64, subscribers: BTreeSet<u64>) {
        let mut slow = Vec::new();
        for id in subscribers {
            let client = self.clients.get_mut(&id);
            if client.is_some_and(|it| it.notify_change(session) > self.settings.queued_max) {
                slow.push(id);
            }
        }
        slow.into_iter().for_each(|id| self.reject(now, id, RejectReason::SlowConsumer));
    }
}

const fn check(topic: &str) -> Result<(), RejectReason> {
    if topic.len() > NAME_MAX { Err(RejectReason::Malformed) } else { Ok(()) }
}
