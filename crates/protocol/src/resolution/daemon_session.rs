//! Session with one resolver daemon: frames still to send, and the sessions that the daemon
//! confirms.

use super::announcement::Announcement;
use super::local_publications::LocalPublications;
use super::session_constants::{KEEPALIVE, PAUSE_MAX, SILENCE};
use crate::rng::Rng;
use crate::{MILLISECOND, Nanos};
use lanecast_wire::net::{FrameWriter, Kind, OpenEntry, query_flag};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// First pause before connecting again.
const PAUSE: Nanos = 50 * MILLISECOND;

/// Request of a resolver about its connection to a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonAction {
    /// Connect, and report success or failure.
    Connect,
    /// Close the dead connection.
    Close,
}

/// Session with one daemon.
#[derive(Debug)]
pub(super) struct DaemonSession {
    phase: Phase,
    pause: Nanos,
    heard_at: Nanos,
    sent_at: Nanos,
    /// Local topics and ended sessions to advertise.
    publications: BTreeSet<(u64, usize)>,
    ended: BTreeSet<u64>,
    /// Topics to query and to withdraw.
    subscriptions: BTreeSet<Arc<str>>,
    withdrawn: BTreeSet<Arc<str>>,
    /// The same for prefixes.
    prefixes: BTreeSet<Arc<str>>,
    withdrawn_prefixes: BTreeSet<Arc<str>>,
    /// A `SYNC` is due after all of the above.
    sync_due: bool,
    /// Sessions that the daemon confirms.
    confirmed: BTreeMap<u64, Confirmed>,
}

#[derive(Debug, Default)]
struct Confirmed {
    /// The daemon has advertised the session over this connection.
    is_fresh: bool,
    /// Subscribed topics that it has advertised: for these it will announce the session's end.
    topics: BTreeSet<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Down { until: Nanos },
    Connecting,
    Up,
}

impl DaemonSession {
    pub(super) const fn new(now: Nanos) -> Self {
        Self {
            phase: Phase::Down { until: now },
            pause: PAUSE,
            heard_at: now,
            sent_at: now,
            publications: BTreeSet::new(),
            ended: BTreeSet::new(),
            subscriptions: BTreeSet::new(),
            withdrawn: BTreeSet::new(),
            prefixes: BTreeSet::new(),
            withdrawn_prefixes: BTreeSet::new(),
            sync_due: false,
            confirmed: BTreeMap::new(),
        }
    }

    pub(super) fn next_action(&mut self, now: Nanos, rng: &mut Rng) -> Option<DaemonAction> {
        match self.phase {
            Phase::Down { until } if until <= now => {
                (self.phase, self.heard_at) = (Phase::Connecting, now);
                Some(DaemonAction::Connect)
            }
            Phase::Connecting | Phase::Up if now >= self.heard_at.saturating_add(SILENCE) => {
                // Changes the phase itself: the caller does not report a close that it was asked
                // for.
                self.disconnected(now, rng);
                Some(DaemonAction::Close)
            }
            _ => None,
        }
    }

    /// The connection is made: everything is to be sent.
    pub(super) fn connected(
        &mut self,
        now: Nanos,
        publications: impl Iterator<Item = (u64, usize)>,
        subscriptions: impl Iterator<Item = Arc<str>>,
        prefixes: impl Iterator<Item = Arc<str>>,
    ) {
        (self.phase, self.heard_at, self.sent_at) = (Phase::Up, now, now);
        // Everything: the daemon may have restarted, and know nothing.
        (self.publications, self.subscriptions) = (publications.collect(), subscriptions.collect());
        self.prefixes = prefixes.collect();
        // Ends need no frame: whatever is not registered before the SYNC has ended.
        self.ended.clear();
        self.withdrawn.clear();
        self.withdrawn_prefixes.clear();
        self.sync_due = true;
        self.confirmed.values_mut().for_each(|it| it.is_fresh = false);
    }

    /// The connection is broken, or could not be made. Confirmed sessions are kept.
    pub(super) fn disconnected(&mut self, now: Nanos, rng: &mut Rng) {
        if !matches!(self.phase, Phase::Down { .. }) {
            // Random: a restarted daemon gets its clients back one after another.
            let pause = self.pause / 2 + rng.below(self.pause / 2);
            self.phase = Phase::Down { until: now.saturating_add(pause) };
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.phase == Phase::Up
    }

    pub(super) const fn on_heard(&mut self, now: Nanos) {
        self.heard_at = now;
    }

    pub(super) const fn deadline(&self) -> Nanos {
        let silent = self.heard_at.saturating_add(SILENCE);
        match self.phase {
            Phase::Down { until } => until,
            Phase::Connecting => silent,
            Phase::Up => {
                let quiet = self.sent_at.saturating_add(KEEPALIVE);
                if quiet < silent { quiet } else { silent }
            }
        }
    }

    /// A local session has another topic.
    pub(super) fn publish(&mut self, session: u64, index: usize) {
        if self.is_up() {
            self.publications.insert((session, index));
        }
    }

    /// A local session has ended.
    pub(super) fn unpublish(&mut self, session: u64) {
        if self.is_up() {
            self.publications.retain(|(id, _)| *id != session);
            self.ended.insert(session);
        }
    }

    /// Queries for a topic.
    pub(super) fn subscribe(&mut self, topic: &Arc<str>) {
        if self.is_up() {
            // The last call decides: a topic is in one of the two lists only.
            self.withdrawn.remove(topic);
            self.subscriptions.insert(Arc::clone(topic));
        }
    }

    /// Withdraws a topic.
    pub(super) fn unsubscribe(&mut self, topic: &Arc<str>) {
        if self.is_up() {
            self.subscriptions.remove(topic);
            self.withdrawn.insert(Arc::clone(topic));
        }
    }

    /// Queries for all topics with a prefix.
    pub(super) fn subscribe_prefix(&mut self, prefix: &Arc<str>) {
        if self.is_up() {
            self.withdrawn_prefixes.remove(prefix);
            self.prefixes.insert(Arc::clone(prefix));
        }
    }

    /// Withdraws a prefix.
    pub(super) fn unsubscribe_prefix(&mut self, prefix: &Arc<str>) {
        if self.is_up() {
            self.prefixes.remove(prefix);
            self.withdrawn_prefixes.insert(Arc::clone(prefix));
        }
    }

    /// The daemon has advertised a topic of a session.
    pub(super) fn confirm(&mut self, session: u64, topic: &Arc<str>) {
        let it = self.confirmed.entry(session).or_default();
        it.is_fresh = true;
        it.topics.insert(Arc::clone(topic));
    }

    /// The daemon has advertised a session again.
    pub(super) fn refresh(&mut self, session: u64) {
        if let Some(it) = self.confirmed.get_mut(&session) {
            it.is_fresh = true;
        }
    }

    /// The daemon no longer confirms a session; returns whether it did.
    pub(super) fn unconfirm(&mut self, session: u64) -> bool {
        self.confirmed.remove(&session).is_some()
    }

    /// A topic is no longer subscribed to; returns whether it was the session's last confirmed one.
    pub(super) fn unconfirm_topic(&mut self, session: u64, topic: &str) -> bool {
        let Some(it) = self.confirmed.get_mut(&session) else { return false };
        it.topics.remove(topic) && it.topics.is_empty() && self.unconfirm(session)
    }

    pub(super) fn confirms(&self, session: u64) -> bool {
        self.confirmed.contains_key(&session)
    }

    /// The daemon has sent everything: returns the sessions that it has not advertised again.
    pub(super) fn synced(&mut self) -> Vec<u64> {
        // Only a complete exchange resets it: a daemon that accepts and closes is not tried fast.
        self.pause = PAUSE;
        let stale = self.confirmed.iter().filter(|(_, it)| !it.is_fresh);
        stale.map(|(session, _)| *session).collect()
    }

    /// Writes the next frame for the daemon; returns its length.
    pub(super) fn next_frame(
        &mut self,
        now: Nanos,
        resolver: u64,
        publications: &LocalPublications,
        buffer: &mut [u8],
    ) -> Option<usize> {
        if !self.is_up() {
            return None;
        }
        let query = |flags, buffer| FrameWriter::new(buffer, Kind::Query, flags, resolver, 0);
        let length = if !self.ended.is_empty() || !self.publications.is_empty() {
            self.write_advert(resolver, publications, buffer)
        } else if !self.withdrawn.is_empty() {
            write_names(query(query_flag::WITHDRAW, buffer), &mut self.withdrawn)
        } else if !self.subscriptions.is_empty() {
            write_names(query(0, buffer), &mut self.subscriptions)
        } else if !self.withdrawn_prefixes.is_empty() {
            let flags = query_flag::WITHDRAW | query_flag::PREFIXES;
            write_prefixes(query(flags, buffer), &mut self.withdrawn_prefixes)
        } else if !self.prefixes.is_empty() {
            write_prefixes(query(query_flag::PREFIXES, buffer), &mut self.prefixes)
        } else if std::mem::take(&mut self.sync_due) {
            // After all names: the SYNC says that the lists are complete.
            query(query_flag::SYNC, buffer).finish()
        } else if now >= self.sent_at.saturating_add(KEEPALIVE) {
            query(0, buffer).finish()
        } else {
            return None;
        };
        self.sent_at = now;
        Some(length)
    }

    fn write_advert(
        &mut self,
        resolver: u64,
        publications: &LocalPublications,
        buffer: &mut [u8],
    ) -> usize {
        let mut writer = FrameWriter::new(buffer, Kind::Advert, 0, resolver, 0);
        while let Some(&id) = self.ended.first()
            && writer.add_entry(Announcement::end_entry(id), 0).is_some()
        {
            self.ended.pop_first();
        }
        let mut open: Option<(u64, OpenEntry)> = None;
        while let Some(&(id, index)) = self.publications.first() {
            let Some((it, name)) = publications.topic(id, index) else {
                self.publications.pop_first();
                continue;
            };
            if open.as_ref().is_none_or(|(last, _)| *last != id) {
                open = writer.add_entry(it.entry(0), name.len()).map(|entry| (id, entry));
            }
            let Some((_, entry)) = &mut open else { break };
            if !writer.add_entry_name(entry, name) {
                break;
            }
            self.publications.pop_first();
        }
        writer.finish()
    }
}

/// Ends a Query with as many of `names` as fit; the others remain.
fn write_names(mut query: FrameWriter<'_>, names: &mut BTreeSet<Arc<str>>) -> usize {
    while let Some(name) = names.first()
        && query.add_name(name)
    {
        names.pop_first();
    }
    query.finish()
}

/// The same with prefixes, each followed by `*`.
fn write_prefixes(mut query: FrameWriter<'_>, prefixes: &mut BTreeSet<Arc<str>>) -> usize {
    while let Some(prefix) = prefixes.first()
        && query.add_name(&format!("{prefix}*"))
    {
        prefixes.pop_first();
    }
    query.finish()
}
