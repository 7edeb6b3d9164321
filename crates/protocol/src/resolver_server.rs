//! The daemon that resolvers meet at, where there is no group. See `docs/protocol/resolution.md`.
//!
//! Clients register what they publish and ask for what they want, each over a connection of its
//! own, and are told of nothing else. All that is registered is rebuilt from them when the daemon
//! starts anew. Nothing here says that a publisher lives.

mod client;
mod publication_table;

pub use crate::resolution::RejectReason;

use crate::resolution::Announcement;
use crate::resolution::terms::SETTLE;
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

/// The shortest buffer for a frame, in bytes.
pub const FRAME_MIN: usize = 512;

/// What a daemon keeps to.
#[derive(Clone, Debug)]
pub struct ResolverServerSettings {
    /// Its random number: no resolver may have it.
    pub daemon: u64,
    /// The most clients.
    pub clients_max: usize,
    /// The most topics that a client may publish, and the most that it may want.
    pub client_topics_max: usize,
    /// The most topics that may be published and wanted by all of them.
    pub topics_max: usize,
    /// The most topics of sessions that may wait until a client reads.
    pub untold_max: usize,
    /// For how long the sessions of a client that is gone are kept.
    pub grace: Nanos,
}

impl Default for ResolverServerSettings {
    fn default() -> Self {
        Self {
            daemon: 0,
            clients_max: 512,
            client_topics_max: 1 << 16,
            topics_max: 1 << 19,
            untold_max: 1 << 17,
            grace: 60 * SECOND,
        }
    }
}

/// How much a daemon has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResolverServerCounters {
    /// Clients that came.
    pub arrived: u64,
    /// Clients whose connection ended, for whatever reason.
    pub departed: u64,
    /// Clients whose connection the daemon ended, and such as it did not let in.
    pub refused: u64,
    /// Frames that came.
    pub frames: u64,
    /// Of those refused, such as sent what is no frame for a daemon.
    pub malformed: u64,
    /// Entries that made no sense.
    pub senseless: u64,
    /// Entries of sessions that another resolver had registered.
    pub foreign: u64,
    /// Topics of sessions that were registered.
    pub registered: u64,
    /// Facts that clients were told.
    pub told: u64,
    /// Sessions that were dropped because their client did not come back.
    pub expired: u64,
}

/// A connection that is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectedClient {
    /// The client's number.
    pub client: u64,
    /// Where it comes from.
    pub from: SocketAddr,
    /// The resolver that it speaks for; 0 if that is not known.
    pub resolver: u64,
    /// Why.
    pub why: RejectReason,
}

/// The daemon's state.
#[derive(Debug)]
pub struct ResolverServer {
    settings: ResolverServerSettings,
    settled: Nanos,
    clients: BTreeMap<u64, Client>,
    last: u64,
    publication_table: PublicationTable,
    refused: VecDeque<RejectedClient>,
    counters: ResolverServerCounters,
}

impl ResolverServer {
    /// A daemon that starts now, and knows nothing.
    pub fn new(settings: ResolverServerSettings, now: Nanos) -> Self {
        Self {
            settings,
            settled: now.saturating_add(SETTLE),
            clients: BTreeMap::new(),
            last: 0,
            publication_table: PublicationTable::default(),
            refused: VecDeque::new(),
            counters: ResolverServerCounters::default(),
        }
    }

    /// A client has connected; gives its number.
    ///
    /// # Errors
    /// If there is no place for it.
    pub fn connect(&mut self, now: Nanos, from: SocketAddr) -> Result<u64, RejectReason> {
        if self.clients.len() >= self.settings.clients_max {
            self.counters.refused += 1;
            return Err(RejectReason::Crowded);
        }
        self.last += 1;
        self.counters.arrived += 1;
        self.clients.insert(self.last, Client::new(now, from));
        Ok(self.last)
    }

    /// A client's connection is gone.
    pub fn disconnect(&mut self, now: Nanos, client: u64) {
        let Some(it) = self.clients.remove(&client) else { return };
        self.counters.departed += 1;
        it.wants.iter().for_each(|name| self.publication_table.unsubscribe(client, name));
        let Some(resolver) = it.resolver else { return };
        let until = now.saturating_add(self.settings.grace);
        for session in self.publication_table.leave(resolver, client, until) {
            let concerned = self.publication_table.concerned(session);
            self.tell_change(session, concerned);
        }
    }

    /// A client's connection is to be closed; [`next_rejected`](Self::next_refused) says so.
    pub fn reject(&mut self, now: Nanos, client: u64, why: RejectReason) {
        let Some(it) = self.clients.get(&client) else { return };
        let resolver = it.resolver.unwrap_or(0);
        self.refused.push_back(RejectedClient { client, from: it.from, resolver, why });
        self.counters.refused += 1;
        self.counters.malformed += u64::from(why == RejectReason::Malformed);
        self.disconnect(now, client);
    }

    /// A client whose connection is to be closed; it counts no longer.
    pub fn next_rejected(&mut self) -> Option<RejectedClient> {
        self.refused.pop_front()
    }

    /// Writes the frame that tells a client why its connection is closed.
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

    /// A frame of a client's has come.
    pub fn on_frame(&mut self, now: Nanos, client: u64, frame: &Frame<'_>) {
        if !self.clients.contains_key(&client) {
            return;
        }
        self.counters.frames += 1;
        if let Err(why) = self.take(now, client, frame) {
            self.reject(now, client, why);
        }
    }

    /// The next frame for a client, written into `buffer`: its length. To be called again until
    /// there is none, whenever the client's connection has room.
    ///
    /// # Panics
    /// If the buffer is shorter than [`FRAME_MIN`].
    pub fn next_frame(&mut self, now: Nanos, client: u64, buffer: &mut [u8]) -> Option<usize> {
        assert!(buffer.len() >= FRAME_MIN, "a buffer of at least {FRAME_MIN} bytes");
        let it = self.clients.get_mut(&client)?;
        let daemon = self.settings.daemon;
        let (length, told) =
            it.next_frame(now, self.settled, daemon, &self.publication_table, buffer)?;
        self.counters.told += told as u64;
        Some(length)
    }

    /// Time has passed: drops whose client does not come back, and refuses who is silent.
    pub fn on_time(&mut self, now: Nanos) {
        while let Some((until, session)) = self.publication_table.next_lost()
            && until <= now
        {
            self.counters.expired += 1;
            self.drop_session(session);
        }
        let silent = self.clients.iter().filter(|(_, client)| client.is_silent(now));
        let silent: Vec<u64> = silent.map(|(id, _)| *id).collect();
        silent.into_iter().for_each(|client| self.reject(now, client, RejectReason::Silent));
    }

    /// When to call [`on_time`](Self::on_time), and to ask for frames.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let clients = self.clients.values().map(|client| client.deadline(self.settled));
        clients.chain(self.publication_table.next_lost().map(|(until, _)| until)).min()
    }

    /// Whether a client is connected, and not to be closed.
    pub fn is_connected(&self, client: u64) -> bool {
        self.clients.contains_key(&client)
    }

    /// How many clients are connected.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// How many sessions are registered.
    pub fn sessions(&self) -> usize {
        self.publication_table.sessions()
    }

    /// How many topics are published and wanted, counted once for each session and client.
    pub const fn topics(&self) -> usize {
        self.publication_table.entries()
    }

    /// How much it has done.
    pub const fn counters(&self) -> &ResolverServerCounters {
        &self.counters
    }

    fn take(&mut self, now: Nanos, client: u64, frame: &Frame<'_>) -> Result<(), RejectReason> {
        let resolver = self.meet(now, client, frame.session)?;
        match frame.kind {
            Kind::Advert if adverts(frame.body).is_whole() => {
                for (entry, topics) in adverts(frame.body) {
                    self.on_entry(now, client, resolver, entry, topics)?;
                }
                Ok(())
            }
            Kind::Query if names(frame.body).is_whole() => self.on_query(client, resolver, frame),
            _ => Err(RejectReason::Malformed),
        }
    }

    /// A client speaks for a resolver, and for one only.
    fn meet(&mut self, now: Nanos, client: u64, resolver: u64) -> Result<u64, RejectReason> {
        let it = self.clients.get_mut(&client).ok_or(RejectReason::Silent)?;
        it.heard(now);
        match it.resolver {
            Some(known) if known == resolver => return Ok(resolver),
            Some(_) => return Err(RejectReason::Malformed),
            None if resolver == 0 || resolver == self.settings.daemon => {
                return Err(RejectReason::Malformed);
            }
            None => it.resolver = Some(resolver),
        }
        // Its last connection may be broken without our knowing.
        if let Some(former) = self.publication_table.arrive(resolver, client) {
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
        if self.publication_table.is_foreign(resolver, session) {
            self.counters.foreign += 1;
            return Ok(());
        }
        if entry.flags & advert_flag::GONE != 0 {
            self.drop_session(session);
            return Ok(());
        }
        let from = self.clients.get(&client).map(|it| it.from);
        let Some(announcement) = from.and_then(|from| Announcement::read(entry, from)) else {
            self.counters.senseless += 1;
            return Ok(());
        };
        if self.publication_table.confirm(announcement) {
            let concerned = self.publication_table.concerned(session);
            self.tell_change(session, concerned);
        }
        topics.try_for_each(|topic| self.publish(now, resolver, announcement, topic))
    }

    fn publish(
        &mut self,
        now: Nanos,
        resolver: u64,
        announcement: Announcement,
        topic: &str,
    ) -> Result<(), RejectReason> {
        let session = announcement.session;
        check(topic)?;
        if self.publication_table.has(session, topic) {
            return Ok(());
        }
        if self.publication_table.topics_of(resolver) >= self.settings.client_topics_max {
            return Err(RejectReason::Excess);
        }
        self.make_room()?;
        let Published::New(name) = self.publication_table.publish(resolver, announcement, topic)
        else {
            return Ok(());
        };
        self.counters.registered += 1;
        let mut stalled = Vec::new();
        for id in self.publication_table.wanted_by(&name) {
            let client = self.clients.get_mut(&id);
            if client.is_some_and(|it| it.tell(session, &name) > self.settings.untold_max) {
                stalled.push(id);
            }
        }
        stalled.into_iter().for_each(|id| self.reject(now, id, RejectReason::Stalled));
        Ok(())
    }

    fn on_query(
        &mut self,
        client: u64,
        resolver: u64,
        frame: &Frame<'_>,
    ) -> Result<(), RejectReason> {
        for topic in names(frame.body) {
            check(topic)?;
            if frame.flags & query_flag::WITHDRAW == 0 {
                self.subscribe(client, topic)?;
            } else if self.clients.get_mut(&client).is_some_and(|it| it.wants.remove(topic)) {
                self.publication_table.unsubscribe(client, topic);
            }
        }
        let Some(it) = self.clients.get_mut(&client) else { return Ok(()) };
        if frame.flags & query_flag::ALL != 0 {
            it.ask_all();
        }
        if frame.flags & query_flag::SYNC != 0 {
            it.ask_sync();
            // What it has not told again is no more.
            for session in self.publication_table.settle(resolver) {
                self.drop_session(session);
            }
        }
        Ok(())
    }

    fn subscribe(&mut self, client: u64, topic: &str) -> Result<(), RejectReason> {
        let wants = self.clients.get(&client).map(|it| &it.wants);
        if !wants.is_some_and(|wants| wants.contains(topic)) {
            if wants.is_some_and(|wants| wants.len() >= self.settings.client_topics_max) {
                return Err(RejectReason::Excess);
            }
            self.make_room()?;
        }
        let name = self.publication_table.subscribe(client, topic);
        if let Some(it) = self.clients.get_mut(&client) {
            it.wants.insert(Arc::clone(&name));
            it.ask(name);
        }
        Ok(())
    }

    /// Who is away has to make room for who is there.
    fn make_room(&mut self) -> Result<(), RejectReason> {
        while self.publication_table.entries() >= self.settings.topics_max {
            let (_, session) = self.publication_table.next_lost().ok_or(RejectReason::Crowded)?;
            self.counters.expired += 1;
            self.drop_session(session);
        }
        Ok(())
    }

    fn drop_session(&mut self, session: u64) {
        let concerned = self.publication_table.drop_session(session);
        self.tell_change(session, concerned);
    }

    fn tell_change(&mut self, session: u64, concerned: BTreeSet<u64>) {
        for id in concerned {
            if let Some(client) = self.clients.get_mut(&id) {
                client.tell_change(session);
            }
        }
    }
}

const fn check(topic: &str) -> Result<(), RejectReason> {
    if topic.len() > NAME_MAX { Err(RejectReason::Malformed) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
