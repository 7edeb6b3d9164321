//! Resolution: which sessions publish a topic, and at which address. A resolver talks to others in a
//! multicast group, to daemons, or both. See `docs/protocol/resolution.md`.
//!
//! A resolver belongs to one process: it advertises the process's sessions (`local_publications`),
//! queries for the topics it subscribes to (`local_subscriptions`), and learns from the others'
//! Adverts and its own (`remote_publications`). It never stops repeating both, so resolvers find each
//! other after any outage. It keeps only topics subscribed to here, and sends within a `rate_limit`.

mod announcement;
mod config;
mod daemon_session;
mod group_size;
mod local_publications;
mod local_subscriptions;
mod rate_limit;
mod reject_reason;
mod remote_publications;
mod schedule;
pub(crate) mod session_constants;

pub use announcement::{Announcement, SessionTransport};
pub use config::{InvalidTopicName, ResolverCounters, ResolverEvent, ResolverSettings};
pub use daemon_session::DaemonAction;
pub use reject_reason::RejectReason;

use crate::rng::Rng;
use crate::{MILLISECOND, Nanos, SECOND};
use daemon_session::DaemonSession;
use group_size::GroupSize;
use lanecast_wire::net::{
    AdvertEntry, DATAGRAM_MIN, FRAME_MAX, Frame, FrameWriter, Kind, NAME_MAX, Names, OpenEntry,
    advert_flag, adverts, names, query_flag,
};
use local_publications::LocalPublications;
use local_subscriptions::LocalSubscriptions;
use rate_limit::RateLimit;
use remote_publications::{AddError, RemotePublications};
use session_constants::FRAME_MIN;
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

/// Largest random delay of an answer in a large group.
const ANSWER_DELAY_MAX: Nanos = 20 * MILLISECOND;
/// Shortest pause before the topics of a lost session are queried again, and its random part.
const RETRY_PAUSE: Nanos = SECOND;
const RETRY_JITTER: Nanos = 2 * SECOND;

/// A resolver.
#[derive(Debug)]
pub struct Resolver {
    id: u64,
    has_group: bool,
    allow_foreign: bool,
    now: Nanos,
    publications: LocalPublications,
    subscriptions: LocalSubscriptions,
    remote: RemotePublications,
    group: GroupSize,
    rate_limit: RateLimit,
    rng: Rng,
    daemons: Vec<DaemonSession>,
    /// Topics of lost sessions, and the time at which they are queried again.
    retries: BTreeSet<Arc<str>>,
    retry_due: Option<Nanos>,
    /// The last frame was an Advert: a Query goes first if both are due.
    last_was_advert: bool,
    events: VecDeque<ResolverEvent>,
    counters: ResolverCounters,
}

impl Resolver {
    /// Creates a resolver without publications and subscriptions.
    pub fn new(settings: ResolverSettings, now: Nanos) -> Self {
        let ResolverSettings { names_rate, bytes_rate, burst_bytes, .. } = settings;
        Self {
            id: settings.resolver,
            has_group: settings.has_group,
            allow_foreign: settings.allow_foreign,
            now,
            publications: LocalPublications::new(),
            subscriptions: LocalSubscriptions::new(),
            remote: RemotePublications::new(settings.topics_max, now),
            group: GroupSize::default(),
            rate_limit: RateLimit::new(names_rate, bytes_rate, burst_bytes),
            rng: Rng::new(settings.seed),
            daemons: Vec::new(),
            retries: BTreeSet::new(),
            retry_due: None,
            last_was_advert: false,
            events: VecDeque::new(),
            counters: ResolverCounters::default(),
        }
    }

    /// Adds a topic of a session of this process.
    ///
    /// # Errors
    /// [`InvalidTopicName`].
    pub fn publish(
        &mut self,
        announcement: Announcement,
        topic: &str,
    ) -> Result<(), InvalidTopicName> {
        check(topic)?;
        self.publications.add(announcement, topic);
        if let Some(index) = self.publications.index_of(announcement.session, topic) {
            for daemon in &mut self.daemons {
                daemon.publish(announcement.session, index);
            }
        }
        self.on_published(announcement, Some(self.id), topic);
        Ok(())
    }

    /// Ends a session of this process.
    pub fn unpublish(&mut self, session: u64) {
        if self.publications.remove(session) {
            self.daemons.iter_mut().for_each(|daemon| daemon.unpublish(session));
            self.on_closed(session, self.id);
        }
    }

    /// Adds a subscriber to a topic. Known publishers are reported again.
    ///
    /// # Errors
    /// [`InvalidTopicName`].
    pub fn subscribe(&mut self, topic: &str) -> Result<(), InvalidTopicName> {
        check(topic)?;
        let is_new = self.subscriptions.publishers(topic).is_none();
        let topic = self.subscriptions.add(topic);
        if is_new {
            self.daemons.iter_mut().for_each(|daemon| daemon.subscribe(&topic));
        }
        let known = self.subscriptions.publishers(&topic).into_iter().flat_map(|(_, known)| known);
        let known = known.filter_map(|session| self.remote.announcement(*session));
        self.events.extend(
            known.map(|announcement| ResolverEvent::Found {
                announcement,
                topic: Arc::clone(&topic),
            }),
        );
        self.find_own(&topic);
        Ok(())
    }

    /// Removes a subscriber from a topic.
    pub fn unsubscribe(&mut self, topic: &str) {
        let name = self.subscriptions.publishers(topic).map(|(name, _)| Arc::clone(name));
        for session in self.subscriptions.remove(topic) {
            self.remote.remove_topic(session, topic);
            self.unconfirm_topic(session, topic);
        }
        if let Some(name) = name.filter(|name| self.subscriptions.publishers(name).is_none()) {
            self.daemons.iter_mut().for_each(|daemon| daemon.unsubscribe(&name));
        }
    }

    /// Forgets a session that is silent or unreachable. The next Advert finds it again; daemons are
    /// asked whether they still know it.
    pub fn session_lost(&mut self, now: Nanos, session: u64) {
        self.now = now;
        let topics = self.forget(session);
        self.unconfirm_all(session);
        self.retries.extend(topics);
        if self.retry_due.is_none() && !self.retries.is_empty() {
            let pause = RETRY_PAUSE + self.rng.below(RETRY_JITTER);
            self.retry_due = Some(now.saturating_add(pause));
        }
    }

    /// Removes a remote session; returns its topics.
    fn forget(&mut self, session: u64) -> BTreeSet<Arc<str>> {
        let topics = self.remote.remove(session);
        topics.iter().for_each(|topic| self.subscriptions.forget(topic, session));
        topics
    }

    /// Handles a frame of the group.
    pub fn on_frame(&mut self, now: Nanos, from: SocketAddr, frame: &Frame<'_>) {
        // Multicast loops back.
        if frame.session == self.id {
            return;
        }
        self.now = now;
        match frame.kind {
            Kind::Advert => self.on_advert(from, frame),
            // Queries with flags are for daemons.
            Kind::Query if frame.flags == 0 => self.on_query(names(frame.body)),
            _ => return,
        }
        self.counters.frames += 1;
        self.group.on_heard(now, frame.session);
    }

    /// Writes the next frame for the group into `buffer`; returns its length. Call again until
    /// `None`.
    ///
    /// # Panics
    /// If the buffer is shorter than [`DATAGRAM_MIN`].
    pub fn next_transmit(&mut self, now: Nanos, buffer: &mut [u8]) -> Option<usize> {
        assert!(buffer.len() >= DATAGRAM_MIN, "a buffer of at least {DATAGRAM_MIN} bytes");
        self.on_time(now);
        if !self.has_group || self.rate_limit.ready() > now {
            return None;
        }
        let is_due = |deadline: Option<Nanos>| deadline.is_some_and(|due| due <= now);
        let advertise = is_due(self.publications.deadline());
        let query = is_due(self.subscriptions.deadline());
        let length = buffer.len().min(FRAME_MAX);
        let buffer = &mut buffer[..length];
        // If both are due, they take turns: neither delays the other for long.
        self.last_was_advert = advertise && !(query && self.last_was_advert);
        let (count, length) = match (self.last_was_advert, query) {
            (true, _) => self.write_advert(buffer),
            (false, true) => self.write_query(buffer),
            (false, false) => return None,
        };
        self.rate_limit.spend(now, count, length);
        self.counters.bytes += length as u64;
        Some(length)
    }

    /// Time of the next call of [`next_transmit`](Self::next_transmit), with or without a group.
    /// Servers have [deadlines of their own](Self::daemon_deadline).
    pub fn next_deadline(&self) -> Option<Nanos> {
        let publications = self.publications.deadline().into_iter();
        let frame = publications.chain(self.subscriptions.deadline()).min();
        let frame = frame.map(|due| due.max(self.rate_limit.ready())).filter(|_| self.has_group);
        frame.into_iter().chain(self.remote.deadline()).chain(self.retry_due).min()
    }

    /// Takes the oldest event. Call after all other methods until `None`: the queue is unbounded.
    pub fn next_event(&mut self) -> Option<ResolverEvent> {
        self.events.pop_front()
    }

    /// Counts so far.
    pub const fn counters(&self) -> &ResolverCounters {
        &self.counters
    }

    /// Expires sessions that are no longer advertised, and queries again for lost ones.
    fn on_time(&mut self, now: Nanos) {
        self.now = now;
        for session in self.remote.sweep(now) {
            if !self.is_confirmed(session) && !self.publications.has(session) {
                self.forget(session);
            }
        }
        self.retry_lost(now);
    }

    /// Queries again for the topics of lost sessions, if that is due.
    fn retry_lost(&mut self, now: Nanos) {
        if self.retry_due.is_none_or(|due| due > now) {
            return;
        }
        self.retry_due = None;
        for topic in std::mem::take(&mut self.retries) {
            if self.subscriptions.publishers(&topic).is_none() {
                continue;
            }
            self.daemons.iter_mut().for_each(|daemon| daemon.subscribe(&topic));
            self.find_own(&topic);
        }
    }

    fn on_advert(&mut self, from: SocketAddr, frame: &Frame<'_>) {
        for (entry, topics) in adverts(frame.body) {
            let session = entry.session.get();
            if self.publications.has(session) {
                continue;
            }
            if entry.flags & advert_flag::GONE != 0 {
                self.on_closed(session, frame.session);
            } else {
                self.on_entry(from, frame.session, entry, topics);
            }
        }
    }

    fn on_entry(
        &mut self,
        from: SocketAddr,
        announcer: u64,
        entry: &AdvertEntry,
        topics: Names<'_>,
    ) {
        let Some(announcement) = Announcement::read(entry, from) else {
            self.counters.malformed += 1;
            return;
        };
        // An Advert with a forged address would make all subscribers send to a victim.
        if !self.allow_foreign && announcement.control.ip() != from.ip() {
            self.counters.foreign += 1;
            return;
        }
        self.remote.refresh(self.now, announcement.session, announcer);
        topics.for_each(|topic| self.on_published(announcement, Some(announcer), topic));
    }

    fn on_query(&mut self, topics: Names<'_>) {
        // In a large group, a random delay spreads the answers.
        let is_large = self.group.is_large(self.now);
        let delay = if is_large { self.rng.below(ANSWER_DELAY_MAX) } else { 0 };
        for topic in topics {
            self.publications.on_query(self.now, topic, delay);
            self.subscriptions.on_query(self.now, topic, &mut self.rng);
        }
    }

    /// Finds the sessions of this process that publish a topic.
    fn find_own(&mut self, topic: &str) {
        let own: Vec<_> = self.publications.of(topic).collect();
        for announcement in own {
            self.on_published(announcement, Some(self.id), topic);
        }
    }

    /// A session publishes a topic, according to `announcer` in the group or to a daemon.
    fn on_published(&mut self, announcement: Announcement, announcer: Option<u64>, topic: &str) {
        let Some((topic, publishers)) = self.subscriptions.publishers(topic) else { return };
        let session = announcement.session;
        if publishers.contains(&session) {
            return;
        }
        let topic = Arc::clone(topic);
        match self.remote.add(self.now, announcement, announcer, &topic) {
            Ok(announcement) => {
                self.subscriptions.found(&topic, session);
                self.events.push_back(ResolverEvent::Found { announcement, topic });
            }
            Err(AddError::Full) => self.counters.overflowed += 1,
            Err(AddError::Closed) => {}
        }
    }

    /// A session has closed, according to `announcer`.
    fn on_closed(&mut self, session: u64, announcer: u64) {
        let Some(topics) = self.remote.close(self.now, session, announcer) else { return };
        self.unconfirm_all(session);
        for topic in topics {
            self.subscriptions.forget(&topic, session);
        }
        self.events.push_back(ResolverEvent::Gone { session });
    }

    /// Writes an Advert with as much as is due and fits; returns the number of names and the length.
    fn write_advert(&mut self, buffer: &mut [u8]) -> (usize, usize) {
        let mut writer = FrameWriter::new(buffer, Kind::Advert, 0, self.id, 0);
        let mut count = 0;
        while let Some(it) = self.publications.next_ended(self.now) {
            if writer.add_entry(it.entry(advert_flag::GONE), 0).is_none() {
                break;
            }
            self.publications.on_end_sent(self.now, it.session, &mut self.rng);
            count += 1;
        }
        let mut open: Option<(u64, OpenEntry)> = None;
        while let Some((it, index, topic)) = self.publications.next_topic(self.now) {
            if open.as_ref().is_none_or(|(session, _)| *session != it.session) {
                open = writer.add_entry(it.entry(0), topic.len()).map(|entry| (it.session, entry));
                count += 1;
            }
            let Some((_, entry)) = &mut open else { break };
            if !writer.add_entry_name(entry, &topic) {
                break;
            }
            self.publications.on_topic_sent(self.now, it.session, index, &mut self.rng);
            // Own Adverts count like others': they find a session of this process that was lost.
            self.remote.refresh(self.now, it.session, self.id);
            self.on_published(it, Some(self.id), &topic);
            count += 1;
        }
        self.counters.adverts += 1;
        (count, writer.finish())
    }

    /// Writes a Query with as much as is due and fits; returns the number of names and the length.
    fn write_query(&mut self, buffer: &mut [u8]) -> (usize, usize) {
        let mut writer = FrameWriter::new(buffer, Kind::Query, 0, self.id, 0);
        let mut count = 0;
        while let Some(topic) = self.subscriptions.next(self.now)
            && writer.add_name(&topic)
        {
            self.subscriptions.on_query_sent(self.now, &topic, &mut self.rng);
            count += 1;
        }
        self.counters.queries += 1;
        (count, writer.finish())
    }

    /// Adds a daemon; returns its number, counted from 0. Every daemon gets everything, and a
    /// session is found if any of them advertises it.
    pub fn add_daemon(&mut self, now: Nanos) -> usize {
        self.daemons.push(DaemonSession::new(now));
        self.daemons.len() - 1
    }

    /// Action due on the connection to a daemon.
    ///
    /// # Panics
    /// If there is no such daemon; the following methods likewise.
    pub fn next_daemon_action(&mut self, now: Nanos, daemon: usize) -> Option<DaemonAction> {
        self.daemons[daemon].next_action(now, &mut self.rng)
    }

    /// The connection to a daemon is made.
    pub fn daemon_connected(&mut self, now: Nanos, daemon: usize) {
        let topics = self.subscriptions.names();
        self.daemons[daemon].connected(now, self.publications.indices(), topics);
    }

    /// The connection to a daemon is broken, or could not be made.
    pub fn daemon_disconnected(&mut self, now: Nanos, daemon: usize) {
        self.daemons[daemon].disconnected(now, &mut self.rng);
    }

    /// Handles a frame of a daemon at the address `from`.
    ///
    /// # Errors
    /// The reason to close the connection: given by the daemon, or its frame is malformed.
    pub fn on_daemon_frame(
        &mut self,
        now: Nanos,
        daemon: usize,
        from: SocketAddr,
        frame: &Frame<'_>,
    ) -> Result<(), RejectReason> {
        self.now = now;
        self.daemons[daemon].on_heard(now);
        match frame.kind {
            Kind::Advert if adverts(frame.body).is_whole() => {
                self.on_daemon_advert(daemon, from, frame);
            }
            Kind::Query if frame.flags & query_flag::SYNC != 0 => {
                for session in self.daemons[daemon].synced() {
                    self.unconfirm(daemon, session);
                }
            }
            Kind::Query if names(frame.body).is_whole() => {}
            Kind::Eject => {
                self.counters.ejected += 1;
                let reason = RejectReason::from_flag(frame.flags);
                return Err(reason.unwrap_or(RejectReason::Malformed));
            }
            _ => return Err(RejectReason::Malformed),
        }
        self.counters.frames += 1;
        Ok(())
    }

    /// Writes the next frame for a daemon into `buffer`; returns its length. Call again until
    /// `None`, whenever the connection has room.
    ///
    /// # Panics
    /// If the buffer is shorter than 512 bytes.
    pub fn next_daemon_frame(
        &mut self,
        now: Nanos,
        daemon: usize,
        buffer: &mut [u8],
    ) -> Option<usize> {
        assert!(buffer.len() >= FRAME_MIN, "a buffer of at least {FRAME_MIN} bytes");
        self.daemons[daemon].next_frame(now, self.id, &self.publications, buffer)
    }

    /// Latest time of the next [action](Self::next_daemon_action) and
    /// [frame](Self::next_daemon_frame) for a daemon.
    pub fn daemon_deadline(&self, daemon: usize) -> Nanos {
        self.daemons[daemon].deadline()
    }

    fn on_daemon_advert(&mut self, daemon: usize, from: SocketAddr, frame: &Frame<'_>) {
        for (entry, topics) in adverts(frame.body) {
            let session = entry.session.get();
            if self.publications.has(session) {
                continue;
            }
            if entry.flags & advert_flag::GONE != 0 {
                self.unconfirm(daemon, session);
                continue;
            }
            let Some(announcement) = Announcement::read(entry, from) else {
                self.counters.malformed += 1;
                continue;
            };
            self.daemons[daemon].refresh(session);
            for topic in topics {
                self.on_published(announcement, None, topic);
                if let Some((topic, known)) = self.subscriptions.publishers(topic)
                    && known.contains(&session)
                {
                    self.daemons[daemon].confirm(session, topic);
                }
            }
        }
    }

    /// A daemon no longer confirms a session.
    fn unconfirm(&mut self, daemon: usize, session: u64) {
        if self.daemons[daemon].unconfirm(session) {
            self.remove_if_unconfirmed(session);
        }
    }

    /// A topic of a session is no longer subscribed to.
    fn unconfirm_topic(&mut self, session: u64, topic: &str) {
        let mut changed = false;
        for daemon in &mut self.daemons {
            changed |= daemon.unconfirm_topic(session, topic);
        }
        if changed {
            self.remove_if_unconfirmed(session);
        }
    }

    /// Removes a session that no daemon confirms and that is not advertised in the group.
    fn remove_if_unconfirmed(&mut self, session: u64) {
        if !self.is_confirmed(session) && self.remote.is_silent(self.now, session) {
            self.forget(session);
            self.events.push_back(ResolverEvent::Gone { session });
        }
    }

    fn is_confirmed(&self, session: u64) -> bool {
        self.daemons.iter().any(|daemon| daemon.confirms(session))
    }

    fn unconfirm_all(&mut self, session: u64) {
        for daemon in &mut self.daemons {
            daemon.unconfirm(session);
        }
    }
}

const fn check(topic: &str) -> Result<(), InvalidTopicName> {
    if topic.is_empty() || topic.len() > NAME_MAX { Err(InvalidTopicName) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
