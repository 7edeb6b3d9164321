//! State of a resolver: what this process publishes and subscribes to, and what others publish
//! according to the group and to daemons.

use super::announcement::Announcement;
use super::config::{ResolverCounters, ResolverEvent, ResolverSettings};
use super::daemon_session::DaemonSession;
use super::group_size::GroupSize;
use super::local_publications::LocalPublications;
use super::local_subscriptions::LocalSubscriptions;
use super::pattern_subscriptions::{AskedPrefix, PatternSubscriptions};
use super::refused_publications::{QueriedAgain, RefusedPublications};
use super::remote_publications::{AddError, RemotePublications};
use crate::rng::Rng;
use crate::{MILLISECOND, Nanos};
use lanecast_transport::TopicSelection;
use lanecast_wire::net::{AdvertEntry, Frame, Names, advert_flag, adverts};
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

/// Largest random delay of an answer in a large group.
const ANSWER_DELAY_MAX: Nanos = 20 * MILLISECOND;

/// State of a resolver.
#[derive(Debug)]
pub(super) struct ResolverState {
    pub(super) id: u64,
    allow_foreign: bool,
    pub(super) now: Nanos,
    pub(super) publications: LocalPublications,
    pub(super) subscriptions: LocalSubscriptions,
    pub(super) patterns: PatternSubscriptions,
    asked: AskedPrefix,
    pub(super) remote: RemotePublications,
    refused: RefusedPublications,
    pub(super) group: GroupSize,
    pub(super) rng: Rng,
    pub(super) daemons: Vec<DaemonSession>,
    pub(super) events: VecDeque<ResolverEvent>,
    pub(super) counters: ResolverCounters,
}

impl ResolverState {
    pub(super) fn new(settings: &ResolverSettings, now: Nanos) -> Self {
        Self {
            id: settings.resolver,
            allow_foreign: settings.allow_foreign,
            now,
            publications: LocalPublications::new(),
            subscriptions: LocalSubscriptions::new(),
            patterns: PatternSubscriptions::new(),
            asked: AskedPrefix::default(),
            remote: RemotePublications::new(settings.topics_max, now),
            refused: RefusedPublications::default(),
            group: GroupSize::default(),
            rng: Rng::new(settings.seed),
            daemons: Vec::new(),
            events: VecDeque::new(),
            counters: ResolverCounters::default(),
        }
    }

    /// Removes a remote session; returns its topics.
    pub(super) fn forget(&mut self, session: u64) -> BTreeSet<Arc<str>> {
        let topics = self.remote.remove(session);
        topics.iter().for_each(|topic| self.subscriptions.forget(topic, session));
        topics
    }

    pub(super) fn on_advert(&mut self, from: SocketAddr, frame: &Frame<'_>) {
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

    pub(super) fn on_query(&mut self, topics: Names<'_>) {
        // In a large group, a random delay spreads the answers.
        let is_large = self.group.is_large(self.now);
        let delay = if is_large { self.rng.below(ANSWER_DELAY_MAX) } else { 0 };
        for topic in topics {
            self.publications.on_query(self.now, topic, delay);
            // Another's Query replaces one of this resolver: both hear the answer.
            self.subscriptions.on_query(self.now, topic, &mut self.rng);
        }
    }

    /// Another resolver queries for all topics with one of the prefixes.
    pub(super) fn on_prefix_query(&mut self, prefixes: Names<'_>) {
        prefixes.filter_map(|name| name.strip_suffix('*')).for_each(|it| self.asked.ask(it));
    }

    /// Time of the next answer to Queries for prefixes.
    pub(super) fn answer_deadline(&self) -> Option<Nanos> {
        self.asked.deadline()
    }

    /// Answers Queries for prefixes, if that is due.
    pub(super) fn answer_prefix_query(&mut self) {
        let Some(prefix) = self.asked.take(self.now) else { return };
        let is_large = self.group.is_large(self.now);
        let rng = &mut self.rng;
        let delay = || if is_large { rng.below(ANSWER_DELAY_MAX) } else { 0 };
        self.publications.on_prefix_query(self.now, &prefix, delay);
    }

    /// Reports the known publishers of the topics of a selection.
    pub(super) fn report_known(&mut self, selection: &TopicSelection) {
        let Self { subscriptions, remote, events, .. } = self;
        for (topic, publishers) in subscriptions.select(|topic| selection.selects(topic)) {
            let announced = publishers.iter().filter_map(|it| remote.announcement(*it));
            events.extend(announced.map(|announcement| ResolverEvent::Found {
                announcement,
                topic: Arc::clone(topic),
            }));
        }
    }

    /// Finds the sessions of this process that publish a topic.
    pub(super) fn find_own(&mut self, topic: &str) {
        let own: Vec<_> = self.publications.of(topic).collect();
        for announcement in own {
            self.on_published(announcement, Some(self.id), topic);
        }
    }

    /// A session publishes a topic, according to `announcer` in the group or to a daemon.
    pub(super) fn on_published(
        &mut self,
        announcement: Announcement,
        announcer: Option<u64>,
        topic: &str,
    ) {
        let session = announcement.session;
        let topic = match self.subscriptions.publishers(topic) {
            // Found before: adverts repeat for as long as the session lives.
            Some((_, publishers)) if publishers.contains(&session) => return,
            Some((topic, _)) => Arc::clone(topic),
            None if self.patterns.take(topic) => Arc::from(topic),
            None => return,
        };
        match self.remote.add(self.now, announcement, announcer, &topic) {
            Ok(announcement) => {
                self.subscriptions.add_matching(&topic);
                self.subscriptions.found(&topic, session);
                self.events.push_back(ResolverEvent::Found { announcement, topic });
            }
            Err(AddError::Full) => {
                self.counters.overflowed += 1;
                // The group repeats its word; a daemon, and this process, do not.
                if announcer.is_none_or(|announcer| announcer == self.id) {
                    self.refused.add(&topic, self.remote.removed());
                }
            }
            // A frame from before the end that came late.
            Err(AddError::Closed) => {}
        }
    }

    /// Time at which publishers that found no room are queried for again, if there is room.
    pub(super) fn refused_deadline(&self) -> Option<Nanos> {
        self.refused.deadline(self.remote.removed())
    }

    /// Topics of publishers that found no room, if it is time to query for them again.
    pub(super) fn take_refused(&mut self) -> Option<QueriedAgain> {
        self.refused.take(self.now, self.remote.removed())
    }

    /// Asks daemons for the publishers of all topics again, and looks for those of this process.
    pub(super) fn query_all_again(&mut self) {
        let names: Vec<_> = self.subscriptions.names().collect();
        let own = self.publications.beginning_with("");
        let own: Vec<_> = own.filter(|topic| self.patterns.selects(topic)).cloned().collect();
        for daemon in &mut self.daemons {
            names.iter().for_each(|name| daemon.subscribe(name));
            self.patterns.prefixes().for_each(|prefix| daemon.subscribe_prefix(&prefix));
        }
        names.iter().chain(&own).for_each(|topic| self.find_own(topic));
    }

    /// A session has closed, according to `announcer`.
    pub(super) fn on_closed(&mut self, session: u64, announcer: u64) {
        let Some(topics) = self.remote.close(self.now, session, announcer) else { return };
        // Its own announcer has ended it: no daemon knows better.
        self.unconfirm_all(session);
        for topic in topics {
            self.subscriptions.forget(&topic, session);
        }
        self.events.push_back(ResolverEvent::Gone { session });
    }

    pub(super) fn on_daemon_advert(&mut self, daemon: usize, from: SocketAddr, frame: &Frame<'_>) {
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
                // No announcer: a daemon's word expires with its confirmation, not by silence.
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
    pub(super) fn unconfirm(&mut self, daemon: usize, session: u64) {
        if self.daemons[daemon].unconfirm(session) {
            self.remove_if_unconfirmed(session);
        }
    }

    /// Forgets the publishers of a topic that is no longer subscribed to.
    pub(super) fn forget_topic(&mut self, topic: &str) {
        for session in self.subscriptions.remove(topic) {
            self.remote.remove_topic(session, topic);
            self.unconfirm_topic(session, topic);
        }
    }

    /// A topic of a session is no longer subscribed to.
    pub(super) fn unconfirm_topic(&mut self, session: u64, topic: &str) {
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

    pub(super) fn is_confirmed(&self, session: u64) -> bool {
        self.daemons.iter().any(|daemon| daemon.confirms(session))
    }

    pub(super) fn unconfirm_all(&mut self, session: u64) {
        for daemon in &mut self.daemons {
            daemon.unconfirm(session);
        }
    }
}
