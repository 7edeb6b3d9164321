//! Who publishes what, and where: a resolver among others in a group, at daemons, or both. See
//! `docs/protocol/resolution.md`.
//!
//! A resolver speaks for one process: it tells what the process publishes, asks for what it wants,
//! and finds both out of what others say and of its own. It never falls silent, so whatever kept
//! resolvers apart, they find each other again. It holds no more of the others' topics than are
//! wanted here, and sends no more than its budget allows.

mod announcement;
mod budget;
mod daemons;
mod known;
mod link;
mod neighbours;
mod offers;
mod schedule;
pub(crate) mod terms;
mod wants;

pub use announcement::{Announcement, SessionTransport};
pub use link::DaemonAction;
pub use terms::RejectReason;

use crate::rng::Rng;
use crate::{MILLISECOND, Nanos};
use budget::Budget;
use known::{Known, NotTaken};
use lanecast_wire::net::{
    AdvertEntry, DATAGRAM_MIN, FRAME_MAX, Frame, FrameWriter, Kind, NAME_MAX, Names, OpenEntry,
    advert_flag, adverts, names,
};
use link::Link;
use neighbours::Neighbours;
use offers::Offers;
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use wants::Wants;

/// Among many, an answer waits for a random time of at most this.
const ANSWER_DELAY_MAX: Nanos = 20 * MILLISECOND;

/// What a resolver keeps to.
#[derive(Clone, Debug)]
pub struct ResolverSettings {
    /// Its random number: no other in the group may have it.
    pub resolver: u64,
    /// Whether there is a group, or peers in its place; else it talks to daemons only.
    pub has_group: bool,
    /// Whether others may tell of sessions at addresses that they do not send from.
    pub foreign: bool,
    /// How many names a second it sends at most.
    pub names_rate: u64,
    /// How many bytes a second it sends at most.
    pub bytes_rate: u64,
    /// How many bytes it sends at once at most.
    pub burst_bytes: u64,
    /// How many publishers of wanted topics it keeps, over all topics; more are not found.
    pub topics_max: usize,
    /// Where its chance begins.
    pub seed: u64,
}

impl Default for ResolverSettings {
    fn default() -> Self {
        Self {
            resolver: 0,
            has_group: true,
            foreign: false,
            names_rate: 100_000,
            bytes_rate: 4_000_000,
            burst_bytes: 64 << 10,
            topics_max: 1 << 18,
            seed: 0,
        }
    }
}

/// What a resolver has found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolverEvent {
    /// A session has a wanted topic. May be told again, so who acts on it looks whether it is new.
    Found {
        /// The session.
        announcement: Announcement,
        /// The topic.
        topic: Arc<str>,
    },
    /// A session that had been found has closed.
    Gone {
        /// The session.
        session: u64,
    },
}

/// How much a resolver has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResolverCounters {
    /// Adverts sent.
    pub adverts: u64,
    /// Queries sent.
    pub queries: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Frames of others heard.
    pub heard: u64,
    /// Entries of others that made no sense.
    pub senseless: u64,
    /// Entries in the group that told of sessions at addresses of others.
    pub foreign: u64,
    /// Publishers of wanted topics for which there was no place.
    pub refused: u64,
    /// How often a daemon has ended the connection with a reason.
    pub ejected: u64,
}

/// A name that no topic can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a topic's name has 1 to {NAME_MAX} bytes; give it a shorter one, or one at all")]
pub struct InvalidTopicName;

/// A resolver.
#[derive(Debug)]
pub struct Resolver {
    id: u64,
    has_group: bool,
    foreign: bool,
    now: Nanos,
    offers: Offers,
    wants: Wants,
    known: Known,
    neighbours: Neighbours,
    budget: Budget,
    rng: Rng,
    links: Vec<Link>,
    /// Topics of sessions that were lost, and when they are asked for again.
    again: BTreeSet<Arc<str>>,
    again_due: Option<Nanos>,
    /// The last frame was an Advert: a Query goes first if both are due.
    has_told: bool,
    events: VecDeque<ResolverEvent>,
    counters: ResolverCounters,
}

impl Resolver {
    /// A resolver that publishes and wants nothing yet.
    pub fn new(settings: ResolverSettings, now: Nanos) -> Self {
        let ResolverSettings { names_rate, bytes_rate, burst_bytes, .. } = settings;
        Self {
            id: settings.resolver,
            has_group: settings.has_group,
            foreign: settings.foreign,
            now,
            offers: Offers::new(),
            wants: Wants::new(),
            known: Known::new(settings.topics_max, now),
            neighbours: Neighbours::default(),
            budget: Budget::new(names_rate, bytes_rate, burst_bytes),
            rng: Rng::new(settings.seed),
            links: Vec::new(),
            again: BTreeSet::new(),
            again_due: None,
            has_told: false,
            events: VecDeque::new(),
            counters: ResolverCounters::default(),
        }
    }

    /// A session of this process has a topic.
    ///
    /// # Errors
    /// [`InvalidTopicName`].
    pub fn publish(
        &mut self,
        announcement: Announcement,
        topic: &str,
    ) -> Result<(), InvalidTopicName> {
        check(topic)?;
        self.offers.add(announcement, topic);
        if let Some(index) = self.offers.place(announcement.session, topic) {
            self.links.iter_mut().for_each(|link| link.publish(announcement.session, index));
        }
        self.find(announcement, Some(self.id), topic);
        Ok(())
    }

    /// A session of this process has closed.
    pub fn unpublish(&mut self, session: u64) {
        if self.offers.remove(session) {
            self.links.iter_mut().for_each(|link| link.unpublish(session));
            self.close(session, self.id);
        }
    }

    /// A topic is wanted, once more. Whoever is known to publish it is told again.
    ///
    /// # Errors
    /// [`InvalidTopicName`].
    pub fn subscribe(&mut self, topic: &str) -> Result<(), InvalidTopicName> {
        check(topic)?;
        let is_new = self.wants.publishers(topic).is_none();
        let topic = self.wants.add(topic);
        if is_new {
            self.links.iter_mut().for_each(|link| link.subscribe(&topic));
        }
        let known = self.wants.publishers(&topic).into_iter().flat_map(|(_, known)| known);
        let known = known.filter_map(|session| self.known.announcement(*session));
        self.events.extend(
            known.map(|announcement| ResolverEvent::Found {
                announcement,
                topic: Arc::clone(&topic),
            }),
        );
        self.find_own(&topic);
        Ok(())
    }

    /// A topic is wanted once less.
    pub fn unsubscribe(&mut self, topic: &str) {
        let name = self.wants.publishers(topic).map(|(name, _)| Arc::clone(name));
        for session in self.wants.remove(topic) {
            self.known.remove_topic(session, topic);
            self.unvouch_topic(session, topic);
        }
        if let Some(name) = name.filter(|name| self.wants.publishers(name).is_none()) {
            self.links.iter_mut().for_each(|link| link.unsubscribe(&name));
        }
    }

    /// Nothing was heard from a session, or it cannot be reached. If it is told again, it is found
    /// again; daemons are asked whether they still know it.
    pub fn session_lost(&mut self, now: Nanos, session: u64) {
        self.now = now;
        let topics = self.forget(session);
        self.ask_again(session, topics.into_iter());
    }

    /// Forgets a session; gives the topics that it had.
    fn forget(&mut self, session: u64) -> BTreeSet<Arc<str>> {
        let topics = self.known.remove(session);
        topics.iter().for_each(|topic| self.wants.forget(topic, session));
        topics
    }

    /// A frame has come.
    pub fn on_frame(&mut self, now: Nanos, from: SocketAddr, frame: &Frame<'_>) {
        if frame.session == self.id {
            return;
        }
        self.now = now;
        match frame.kind {
            Kind::Advert => self.on_advert(from, frame),
            // Queries with flags are for a daemon.
            Kind::Query if frame.flags == 0 => self.on_query(names(frame.body)),
            _ => return,
        }
        self.counters.heard += 1;
        self.neighbours.note(now, frame.session);
    }

    /// The next frame for the group, written into `buffer`: its length. To be called again until
    /// there is none.
    ///
    /// # Panics
    /// If the buffer is shorter than [`DATAGRAM_MIN`].
    pub fn next_transmit(&mut self, now: Nanos, buffer: &mut [u8]) -> Option<usize> {
        assert!(buffer.len() >= DATAGRAM_MIN, "a buffer of at least {DATAGRAM_MIN} bytes");
        self.on_time(now);
        if !self.has_group || self.budget.ready() > now {
            return None;
        }
        let is_due = |deadline: Option<Nanos>| deadline.is_some_and(|due| due <= now);
        let (tell, ask) = (is_due(self.offers.deadline()), is_due(self.wants.deadline()));
        let length = buffer.len().min(FRAME_MAX);
        let buffer = &mut buffer[..length];
        self.has_told = tell && !(ask && self.has_told);
        let (count, length) = match (self.has_told, ask) {
            (true, _) => self.tell(buffer),
            (false, true) => self.ask(buffer),
            (false, false) => return None,
        };
        self.budget.spend(now, count, length);
        self.counters.bytes += length as u64;
        Some(length)
    }

    /// When to ask for the next frame, whether there is a group or not. Daemons have deadlines of
    /// their own.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let frame = self.offers.deadline().into_iter().chain(self.wants.deadline()).min();
        let frame = frame.map(|due| due.max(self.budget.ready())).filter(|_| self.has_group);
        frame.into_iter().chain(self.known.deadline()).chain(self.again_due).min()
    }

    /// What has been found out, in order. To be called after all else until there is none: events
    /// wait without limit.
    pub fn next_event(&mut self) -> Option<ResolverEvent> {
        self.events.pop_front()
    }

    /// How much it has done.
    pub const fn counters(&self) -> &ResolverCounters {
        &self.counters
    }

    /// Forgets whom nobody speaks of any more, and looks for whom was lost.
    fn on_time(&mut self, now: Nanos) {
        self.now = now;
        for session in self.known.sweep(now) {
            if !self.is_vouched(session) && !self.offers.has(session) {
                self.forget(session);
            }
        }
        self.ask_for_lost(now);
    }

    fn on_advert(&mut self, from: SocketAddr, frame: &Frame<'_>) {
        for (entry, topics) in adverts(frame.body) {
            let session = entry.session.get();
            if self.offers.has(session) {
                continue;
            }
            if entry.flags & advert_flag::GONE != 0 {
                self.close(session, frame.session);
            } else {
                self.on_entry(from, frame.session, entry, topics);
            }
        }
    }

    fn on_entry(&mut self, from: SocketAddr, teller: u64, entry: &AdvertEntry, topics: Names<'_>) {
        let Some(announcement) = Announcement::read(entry, from) else {
            self.counters.senseless += 1;
            return;
        };
        // Whoever could name any address could have everybody send there.
        if !self.foreign && announcement.control.ip() != from.ip() {
            self.counters.foreign += 1;
            return;
        }
        self.known.refresh(self.now, announcement.session, teller);
        topics.for_each(|topic| self.find(announcement, Some(teller), topic));
    }

    fn on_query(&mut self, topics: Names<'_>) {
        let are_many = self.neighbours.are_many(self.now);
        let delay = if are_many { self.rng.below(ANSWER_DELAY_MAX) } else { 0 };
        for topic in topics {
            self.offers.ask(self.now, topic, delay);
            self.wants.heard(self.now, topic, &mut self.rng);
        }
    }

    /// Finds the sessions of this process that have a topic.
    fn find_own(&mut self, topic: &str) {
        let own: Vec<_> = self.offers.of(topic).collect();
        own.into_iter().for_each(|announcement| self.find(announcement, Some(self.id), topic));
    }

    /// A session has a topic, says `teller` in the group, or else a daemon.
    fn find(&mut self, announcement: Announcement, teller: Option<u64>, topic: &str) {
        let Some((topic, publishers)) = self.wants.publishers(topic) else { return };
        let session = announcement.session;
        if publishers.contains(&session) {
            return;
        }
        let topic = Arc::clone(topic);
        match self.known.add(self.now, announcement, teller, &topic) {
            Ok(announcement) => {
                self.wants.found(&topic, session);
                self.events.push_back(ResolverEvent::Found { announcement, topic });
            }
            Err(NotTaken::Full) => self.counters.refused += 1,
            Err(NotTaken::Closed) => {}
        }
    }

    /// A session has closed, says `teller`.
    fn close(&mut self, session: u64, teller: u64) {
        let Some(topics) = self.known.close(self.now, session, teller) else { return };
        self.unvouch_all(session);
        for topic in topics {
            self.wants.forget(&topic, session);
        }
        self.events.push_back(ResolverEvent::Gone { session });
    }

    /// Writes an Advert of as much as is due and fits; gives how many entries and names.
    fn tell(&mut self, buffer: &mut [u8]) -> (usize, usize) {
        let mut writer = FrameWriter::new(buffer, Kind::Advert, 0, self.id, 0);
        let mut count = 0;
        while let Some(it) = self.offers.next_leaving(self.now) {
            if writer.add_entry(it.entry(advert_flag::GONE), 0).is_none() {
                break;
            }
            self.offers.told_leaving(self.now, it.session, &mut self.rng);
            count += 1;
        }
        let mut open: Option<(u64, OpenEntry)> = None;
        while let Some((it, index, topic)) = self.offers.next_topic(self.now) {
            if open.as_ref().is_none_or(|(session, _)| *session != it.session) {
                open = writer.add_entry(it.entry(0), topic.len()).map(|entry| (it.session, entry));
                count += 1;
            }
            let Some((_, entry)) = &mut open else { break };
            if !writer.add_entry_name(entry, &topic) {
                break;
            }
            self.offers.told_topic(self.now, it.session, index, &mut self.rng);
            // What others hear is heard here too: a session that was lost is found again.
            self.known.refresh(self.now, it.session, self.id);
            self.find(it, Some(self.id), &topic);
            count += 1;
        }
        self.counters.adverts += 1;
        (count, writer.finish())
    }

    /// Writes a Query for as much as is due and fits; gives how many names.
    fn ask(&mut self, buffer: &mut [u8]) -> (usize, usize) {
        let mut writer = FrameWriter::new(buffer, Kind::Query, 0, self.id, 0);
        let mut count = 0;
        while let Some(topic) = self.wants.next(self.now)
            && writer.add_name(&topic)
        {
            self.wants.asked(self.now, &topic, &mut self.rng);
            count += 1;
        }
        self.counters.queries += 1;
        (count, writer.finish())
    }
}

const fn check(topic: &str) -> Result<(), InvalidTopicName> {
    if topic.is_empty() || topic.len() > NAME_MAX { Err(InvalidTopicName) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
