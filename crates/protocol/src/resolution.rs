//! Resolution: which sessions publish a topic, and at which address. A resolver talks to others in
//! a multicast group, to daemons, or both. See `docs/protocol/resolution.md`.
//!
//! A resolver belongs to one process: it advertises the process's sessions (`local_publications`),
//! queries for the topics it subscribes to (`local_subscriptions`), and learns from the others'
//! Adverts and its own (`remote_publications`). It never stops repeating both, so resolvers find
//! each other after any outage. It keeps only topics subscribed to here, and sends within a
//! `rate_limit`.

mod announcement;
mod config;
mod daemon_session;
mod group_size;
mod local_publications;
mod local_subscriptions;
mod pattern_subscriptions;
mod rate_limit;
mod refused_publications;
mod reject_reason;
mod remote_publications;
mod schedule;
pub(crate) mod session_constants;
mod state;
mod tombstones;

pub use announcement::{Announcement, SessionTransport};
pub use config::{InvalidTopicName, ResolverCounters, ResolverEvent, ResolverSettings};
pub use daemon_session::DaemonAction;
pub use reject_reason::RejectReason;

use crate::{Nanos, SECOND};
use daemon_session::DaemonSession;
use lanecast_transport::TopicSelection;
use lanecast_wire::net::{
    DATAGRAM_MIN, FRAME_MAX, Frame, FrameWriter, Kind, NAME_MAX, OpenEntry, advert_flag, adverts,
    names, query_flag,
};
use rate_limit::RateLimit;
use refused_publications::QueriedAgain;
use session_constants::FRAME_MIN;
use state::ResolverState;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

/// Shortest pause before the topics of a lost session are queried again, and its random part.
const RETRY_PAUSE: Nanos = SECOND;
const RETRY_JITTER: Nanos = 2 * SECOND;

/// A resolver.
#[derive(Debug)]
pub struct Resolver {
    state: ResolverState,
    has_group: bool,
    rate_limit: RateLimit,
    /// Topics of lost and refused sessions, and the time at which they are queried again.
    retries: BTreeSet<Arc<str>>,
    retry_due: Option<Nanos>,
    /// The last frame was an Advert: a Query goes first if both are due.
    last_was_advert: bool,
}

impl Resolver {
    /// Creates a resolver without publications and subscriptions.
    pub fn new(settings: ResolverSettings, now: Nanos) -> Self {
        let ResolverSettings { names_rate, bytes_rate, burst_bytes, has_group, .. } = settings;
        Self {
            state: ResolverState::new(&settings, now),
            has_group,
            rate_limit: RateLimit::new(names_rate, bytes_rate, burst_bytes),
            retries: BTreeSet::new(),
            retry_due: None,
            last_was_advert: false,
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
        self.state.publications.add(announcement, topic);
        if let Some(index) = self.state.publications.index_of(announcement.session, topic) {
            for daemon in &mut self.state.daemons {
                daemon.publish(announcement.session, index);
            }
        }
        // Subscribers of the same process find it here: own frames are ignored.
        self.state.on_published(announcement, Some(self.state.id), topic);
        Ok(())
    }

    /// Ends a session of this process.
    pub fn unpublish(&mut self, session: u64) {
        if self.state.publications.remove(session) {
            self.state.daemons.iter_mut().for_each(|daemon| daemon.unpublish(session));
            self.state.on_closed(session, self.state.id);
        }
    }

    /// Adds a subscriber to a topic. Known publishers are reported again.
    ///
    /// # Errors
    /// [`InvalidTopicName`].
    pub fn subscribe(&mut self, topic: &str) -> Result<(), InvalidTopicName> {
        check(topic)?;
        let is_new = !self.state.subscriptions.is_named(topic);
        let topic = self.state.subscriptions.add(topic);
        // Daemons keep subscriptions: further subscribers of this process concern only it.
        if is_new {
            self.state.daemons.iter_mut().for_each(|daemon| daemon.subscribe(&topic));
        }
        let known =
            self.state.subscriptions.publishers(&topic).into_iter().flat_map(|(_, known)| known);
        let known = known.filter_map(|session| self.state.remote.announcement(*session));
        self.state.events.extend(
            known.map(|announcement| ResolverEvent::Found {
                announcement,
                topic: Arc::clone(&topic),
            }),
        );
        self.state.find_own(&topic);
        Ok(())
    }

    /// Removes a subscriber from a topic.
    pub fn unsubscribe(&mut self, topic: &str) {
        // Taken before the removal, which may drop the name.
        let name = self.state.subscriptions.publishers(topic).map(|(name, _)| Arc::clone(name));
        // Whether or not they have room: a full one may have joined this very topic.
        if self.state.patterns.selects(topic) {
            self.state.subscriptions.leave_to_pattern(topic);
        } else {
            self.state.forget_topic(topic);
        }
        if let Some(name) = name.filter(|name| !self.state.subscriptions.is_named(name)) {
            self.state.daemons.iter_mut().for_each(|daemon| daemon.unsubscribe(&name));
        }
    }

    /// Adds subscriber `number` of the topics that the patterns of `selection` match. Known
    /// publishers are reported again.
    pub fn subscribe_pattern(&mut self, number: u64, selection: &TopicSelection) {
        for prefix in self.state.patterns.add(number, selection) {
            self.state.daemons.iter_mut().for_each(|daemon| daemon.subscribe_prefix(&prefix));
        }
        self.state.report_known(selection);
        let own: Vec<_> = self.state.publications.beginning_with("").cloned().collect();
        own.iter().filter(|topic| selection.selects(topic)).for_each(|it| self.state.find_own(it));
    }

    /// Reports the known publishers of the topics that subscriber `number` of patterns wants again:
    /// it had no room for all of them, and has some now.
    pub fn find_again(&mut self, number: u64) {
        if let Some(selection) = self.state.patterns.selection(number).cloned() {
            self.state.report_known(&selection);
        }
    }

    /// Removes subscriber `number` of patterns.
    pub fn unsubscribe_pattern(&mut self, number: u64) {
        for prefix in self.state.patterns.remove(number) {
            self.state.daemons.iter_mut().for_each(|daemon| daemon.unsubscribe_prefix(&prefix));
        }
        let matching: Vec<_> = self.state.subscriptions.matching().cloned().collect();
        let unwanted = matching.iter().filter(|topic| !self.state.patterns.selects(topic));
        for topic in Vec::from_iter(unwanted.cloned()) {
            self.state.forget_topic(&topic);
        }
    }

    /// Forgets a session that is silent or unreachable. The next Advert finds it again; daemons are
    /// asked whether they still know it.
    pub fn session_lost(&mut self, now: Nanos, session: u64) {
        self.state.now = now;
        let topics = self.state.forget(session);
        self.state.unconfirm_all(session);
        self.retry(now, topics);
    }

    /// Has daemons asked for topics again, after a pause.
    fn retry(&mut self, now: Nanos, topics: BTreeSet<Arc<str>>) {
        self.retries.extend(topics);
        if self.retry_due.is_none() && !self.retries.is_empty() {
            // Random: all subscribers lose a crashed publisher at the same time.
            let pause = RETRY_PAUSE + self.state.rng.below(RETRY_JITTER);
            self.retry_due = Some(now.saturating_add(pause));
        }
    }

    /// Handles a frame of the group.
    pub fn on_frame(&mut self, now: Nanos, from: SocketAddr, frame: &Frame<'_>) {
        // Multicast loops back.
        if frame.session == self.state.id {
            return;
        }
        self.state.now = now;
        match frame.kind {
            Kind::Advert => self.state.on_advert(from, frame),
            // Queries with other flags are for daemons.
            Kind::Query if frame.flags == 0 => self.state.on_query(names(frame.body)),
            Kind::Query if frame.flags == query_flag::PREFIXES => {
                self.state.on_prefix_query(names(frame.body));
            }
            _ => return,
        }
        self.state.counters.frames += 1;
        self.state.group.on_heard(now, frame.session);
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
        let advertise = is_due(self.state.publications.deadline());
        let query = is_due(self.query_deadline());
        let length = buffer.len().min(FRAME_MAX);
        let buffer = &mut buffer[..length];
        // If both are due, they take turns: neither delays the other for long.
        self.last_was_advert = advertise && !(query && self.last_was_advert);
        let (count, length) = match (self.last_was_advert, query) {
            (true, _) => self.write_advert(buffer),
            (false, true) => self.write_query(buffer),
            (false, false) => return None,
        };
        // Spent after the frame is written: one frame may overdraw, and the next one waits.
        self.rate_limit.spend(now, count, length);
        self.state.counters.bytes += length as u64;
        Some(length)
    }

    /// Time of the next call of [`next_transmit`](Self::next_transmit), with or without a group.
    /// Servers have [deadlines of their own](Self::daemon_deadline).
    pub fn next_deadline(&self) -> Option<Nanos> {
        let publications = self.state.publications.deadline().into_iter();
        let frame = publications.chain(self.query_deadline()).min();
        let frame = frame.map(|due| due.max(self.rate_limit.ready())).filter(|_| self.has_group);
        let others = self.state.remote.deadline().into_iter().chain(self.state.answer_deadline());
        let retries = self.retry_due.into_iter().chain(self.state.refused_deadline());
        frame.into_iter().chain(others).chain(retries).min()
    }

    fn query_deadline(&self) -> Option<Nanos> {
        let names = self.state.subscriptions.deadline().into_iter();
        names.chain(self.state.patterns.deadline()).min()
    }

    /// Takes the oldest event. Call after all other methods until `None`: the queue is unbounded.
    pub fn next_event(&mut self) -> Option<ResolverEvent> {
        self.state.events.pop_front()
    }

    /// Counts so far.
    pub const fn counters(&self) -> &ResolverCounters {
        &self.state.counters
    }

    /// Expires sessions that are no longer advertised, and queries again for lost ones.
    fn on_time(&mut self, now: Nanos) {
        self.state.now = now;
        self.state.answer_prefix_query();
        for session in self.state.remote.sweep(now) {
            // Silence in the group proves nothing where a daemon or this process vouches for it.
            if !self.state.is_confirmed(session) && !self.state.publications.has(session) {
                self.state.forget(session);
            }
        }
        match self.state.take_refused() {
            Some(QueriedAgain::Topics(topics)) => self.retry(now, topics),
            Some(QueriedAgain::All) => self.state.query_all_again(),
            None => {}
        }
        self.retry_lost(now);
    }

    /// Queries again for the topics of lost and refused sessions, if that is due.
    fn retry_lost(&mut self, now: Nanos) {
        if self.retry_due.is_none_or(|due| due > now) {
            return;
        }
        self.retry_due = None;
        for topic in std::mem::take(&mut self.retries) {
            for prefix in self.state.patterns.query_again(&topic) {
                self.state.daemons.iter_mut().for_each(|daemon| daemon.subscribe_prefix(&prefix));
            }
            // Not if it was unsubscribed from in the meantime.
            if self.state.subscriptions.is_named(&topic) {
                self.state.daemons.iter_mut().for_each(|daemon| daemon.subscribe(&topic));
            }
            self.state.find_own(&topic);
        }
    }

    /// Writes an Advert with as much as is due and fits; returns the number of names and the
    /// length.
    fn write_advert(&mut self, buffer: &mut [u8]) -> (usize, usize) {
        let mut writer = FrameWriter::new(buffer, Kind::Advert, 0, self.state.id, 0);
        let mut count = 0;
        // Ends first: subscribers stop joining what is gone.
        while let Some(it) = self.state.publications.next_ended(self.state.now) {
            if writer.add_entry(it.entry(advert_flag::GONE), 0).is_none() {
                break;
            }
            self.state.publications.on_end_sent(self.state.now, it.session, &mut self.state.rng);
            count += 1;
        }
        let mut open: Option<(u64, OpenEntry)> = None;
        while let Some((it, index, topic)) = self.state.publications.next_topic(self.state.now) {
            // Topics of one session share its entry.
            if open.as_ref().is_none_or(|(session, _)| *session != it.session) {
                open = writer.add_entry(it.entry(0), topic.len()).map(|entry| (it.session, entry));
                count += 1;
            }
            let Some((_, entry)) = &mut open else { break };
            if !writer.add_entry_name(entry, &topic) {
                break;
            }
            self.state.publications.on_topic_sent(
                self.state.now,
                it.session,
                index,
                &mut self.state.rng,
            );
            // Own Adverts count like others': they find a session of this process that was lost.
            self.state.remote.refresh(self.state.now, it.session, self.state.id);
            self.state.on_published(it, Some(self.state.id), &topic);
            count += 1;
        }
        self.state.counters.adverts += 1;
        (count, writer.finish())
    }

    /// Writes a Query with as much as is due and fits; returns the number of names and the length.
    fn write_query(&mut self, buffer: &mut [u8]) -> (usize, usize) {
        self.state.counters.queries += 1;
        // Prefixes first: each may stand for thousands of names.
        if let Some(prefix) = self.state.patterns.next(self.state.now) {
            return self.write_prefix_query(prefix, buffer);
        }
        let mut writer = FrameWriter::new(buffer, Kind::Query, 0, self.state.id, 0);
        let mut count = 0;
        while let Some(topic) = self.state.subscriptions.next(self.state.now)
            && writer.add_name(&topic)
        {
            self.state.subscriptions.on_query_sent(self.state.now, &topic, &mut self.state.rng);
            count += 1;
        }
        (count, writer.finish())
    }

    /// Writes a Query for prefixes, from the due `prefix` on.
    fn write_prefix_query(&mut self, prefix: Arc<str>, buffer: &mut [u8]) -> (usize, usize) {
        let flags = query_flag::PREFIXES;
        let mut writer = FrameWriter::new(buffer, Kind::Query, flags, self.state.id, 0);
        let (mut count, mut next) = (0, Some(prefix));
        while let Some(prefix) = next
            && writer.add_name(&format!("{prefix}*"))
        {
            self.state.patterns.on_query_sent(self.state.now, &prefix, &mut self.state.rng);
            count += 1;
            next = self.state.patterns.next(self.state.now);
        }
        (count, writer.finish())
    }

    /// Adds a daemon; returns its number, counted from 0. Every daemon gets everything, and a
    /// session is found if any of them advertises it.
    pub fn add_daemon(&mut self, now: Nanos) -> usize {
        self.state.daemons.push(DaemonSession::new(now));
        self.state.daemons.len() - 1
    }

    /// Action due on the connection to a daemon.
    ///
    /// # Panics
    /// If there is no such daemon; the following methods likewise.
    pub fn next_daemon_action(&mut self, now: Nanos, daemon: usize) -> Option<DaemonAction> {
        self.state.daemons[daemon].next_action(now, &mut self.state.rng)
    }

    /// The connection to a daemon is made.
    pub fn daemon_connected(&mut self, now: Nanos, daemon: usize) {
        let (topics, prefixes) = (self.state.subscriptions.names(), self.state.patterns.prefixes());
        let publications = self.state.publications.indices();
        self.state.daemons[daemon].connected(now, publications, topics, prefixes);
    }

    /// The connection to a daemon is broken, or could not be made.
    pub fn daemon_disconnected(&mut self, now: Nanos, daemon: usize) {
        self.state.daemons[daemon].disconnected(now, &mut self.state.rng);
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
        self.state.now = now;
        self.state.daemons[daemon].on_heard(now);
        match frame.kind {
            Kind::Advert if adverts(frame.body).is_whole() => {
                self.state.on_daemon_advert(daemon, from, frame);
            }
            Kind::Query if frame.flags & query_flag::SYNC != 0 => {
                for session in self.state.daemons[daemon].synced() {
                    self.state.unconfirm(daemon, session);
                }
            }
            // A keepalive: only the sign of life counts.
            Kind::Query if names(frame.body).is_whole() => {}
            Kind::Eject => {
                self.state.counters.ejected += 1;
                let reason = RejectReason::from_flag(frame.flags);
                return Err(reason.unwrap_or(RejectReason::Malformed));
            }
            _ => return Err(RejectReason::Malformed),
        }
        self.state.counters.frames += 1;
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
        self.state.daemons[daemon].next_frame(now, self.state.id, &self.state.publications, buffer)
    }

    /// Latest time of the next [action](Self::next_daemon_action) and
    /// [frame](Self::next_daemon_frame) for a daemon.
    pub fn daemon_deadline(&self, daemon: usize) -> Nanos {
        self.state.daemons[daemon].deadline()
    }
}

const fn check(topic: &str) -> Result<(), InvalidTopicName> {
    if topic.is_empty() || topic.len() > NAME_MAX { Err(InvalidTopicName) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
