//! A resolver's connection to one daemon: what is still to be said there, and what it stands for.

use super::announcement::Announcement;
use super::offers::Offers;
use super::terms::{KEEPALIVE, PAUSE_MAX, SILENCE};
use crate::rng::Rng;
use crate::{MILLISECOND, Nanos};
use lanecast_wire::net::{FrameWriter, Kind, OpenEntry, query_flag};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The first pause before connecting again.
const PAUSE: Nanos = 50 * MILLISECOND;

/// What a resolver wants done about its connection to a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonAction {
    /// Connect, and say when that has succeeded or failed.
    Connect,
    /// Close the connection: it is dead.
    Close,
}

/// Connected, or trying to be.
#[derive(Debug)]
pub(super) struct Link {
    phase: Phase,
    pause: Nanos,
    heard: Nanos,
    said: Nanos,
    /// Topics of our sessions that are to be told, and sessions whose end is.
    offers: BTreeSet<(u64, usize)>,
    ended: BTreeSet<u64>,
    wants: BTreeSet<Arc<str>>,
    withdrawn: BTreeSet<Arc<str>>,
    /// All has been said once, when what is above is.
    sync_due: bool,
    /// Sessions that the daemon stands for.
    vouched: BTreeMap<u64, Vouched>,
}

#[derive(Debug, Default)]
struct Vouched {
    /// It has told of the session over this connection.
    is_fresh: bool,
    /// The wanted topics that it has told of: for these it will tell the session's end.
    topics: BTreeSet<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Down { until: Nanos },
    Connecting,
    Up,
}

impl Link {
    pub(super) const fn new(now: Nanos) -> Self {
        Self {
            phase: Phase::Down { until: now },
            pause: PAUSE,
            heard: now,
            said: now,
            offers: BTreeSet::new(),
            ended: BTreeSet::new(),
            wants: BTreeSet::new(),
            withdrawn: BTreeSet::new(),
            sync_due: false,
            vouched: BTreeMap::new(),
        }
    }

    pub(super) fn act(&mut self, now: Nanos, rng: &mut Rng) -> Option<DaemonAction> {
        match self.phase {
            Phase::Down { until } if until <= now => {
                (self.phase, self.heard) = (Phase::Connecting, now);
                Some(DaemonAction::Connect)
            }
            Phase::Connecting | Phase::Up if now >= self.heard.saturating_add(SILENCE) => {
                self.disconnected(now, rng);
                Some(DaemonAction::Close)
            }
            _ => None,
        }
    }

    /// The daemon is there: it is told everything.
    pub(super) fn connected(
        &mut self,
        now: Nanos,
        offers: impl Iterator<Item = (u64, usize)>,
        wants: impl Iterator<Item = Arc<str>>,
    ) {
        (self.phase, self.heard, self.said) = (Phase::Up, now, now);
        (self.offers, self.wants) = (offers.collect(), wants.collect());
        self.ended.clear();
        self.withdrawn.clear();
        self.sync_due = true;
        self.vouched.values_mut().for_each(|it| it.is_fresh = false);
    }

    /// The connection is gone, or could not be made. What the daemon told is kept.
    pub(super) fn disconnected(&mut self, now: Nanos, rng: &mut Rng) {
        if !matches!(self.phase, Phase::Down { .. }) {
            let pause = self.pause / 2 + rng.below(self.pause / 2);
            self.phase = Phase::Down { until: now.saturating_add(pause) };
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.phase == Phase::Up
    }

    pub(super) const fn heard(&mut self, now: Nanos) {
        self.heard = now;
    }

    pub(super) const fn deadline(&self) -> Nanos {
        let silent = self.heard.saturating_add(SILENCE);
        match self.phase {
            Phase::Down { until } => until,
            Phase::Connecting => silent,
            Phase::Up => {
                let quiet = self.said.saturating_add(KEEPALIVE);
                if quiet < silent { quiet } else { silent }
            }
        }
    }

    /// One of our sessions has another topic.
    pub(super) fn publish(&mut self, session: u64, index: usize) {
        if self.is_up() {
            self.offers.insert((session, index));
        }
    }

    /// One of our sessions has ended.
    pub(super) fn unpublish(&mut self, session: u64) {
        if self.is_up() {
            self.offers.retain(|(id, _)| *id != session);
            self.ended.insert(session);
        }
    }

    /// A topic is wanted, or to be asked for again.
    pub(super) fn subscribe(&mut self, topic: &Arc<str>) {
        if self.is_up() {
            self.withdrawn.remove(topic);
            self.wants.insert(Arc::clone(topic));
        }
    }

    /// A topic is wanted no longer.
    pub(super) fn unsubscribe(&mut self, topic: &Arc<str>) {
        if self.is_up() {
            self.wants.remove(topic);
            self.withdrawn.insert(Arc::clone(topic));
        }
    }

    /// The daemon has told that a session has a topic.
    pub(super) fn vouch(&mut self, session: u64, topic: &Arc<str>) {
        let it = self.vouched.entry(session).or_default();
        it.is_fresh = true;
        it.topics.insert(Arc::clone(topic));
    }

    /// The daemon has told of a session again.
    pub(super) fn refresh(&mut self, session: u64) {
        if let Some(it) = self.vouched.get_mut(&session) {
            it.is_fresh = true;
        }
    }

    /// The daemon stands for a session no longer; gives whether it did.
    pub(super) fn unvouch(&mut self, session: u64) -> bool {
        self.vouched.remove(&session).is_some()
    }

    /// A topic of a session is wanted no longer; gives whether the daemon stood for that only.
    pub(super) fn unvouch_topic(&mut self, session: u64, topic: &str) -> bool {
        let Some(it) = self.vouched.get_mut(&session) else { return false };
        it.topics.remove(topic) && it.topics.is_empty() && self.unvouch(session)
    }

    pub(super) fn vouches_for(&self, session: u64) -> bool {
        self.vouched.contains_key(&session)
    }

    /// The daemon has told all: it stands no longer for what it has not told again.
    pub(super) fn synced(&mut self) -> Vec<u64> {
        self.pause = PAUSE;
        let stale = self.vouched.iter().filter(|(_, it)| !it.is_fresh);
        stale.map(|(session, _)| *session).collect()
    }

    /// Writes the next frame for the daemon.
    pub(super) fn next_frame(
        &mut self,
        now: Nanos,
        resolver: u64,
        offers: &Offers,
        buffer: &mut [u8],
    ) -> Option<usize> {
        if !self.is_up() {
            return None;
        }
        let query = |flags, buffer| FrameWriter::new(buffer, Kind::Query, flags, resolver, 0);
        let length = if !self.ended.is_empty() || !self.offers.is_empty() {
            self.tell(resolver, offers, buffer)
        } else if !self.withdrawn.is_empty() {
            list(query(query_flag::WITHDRAW, buffer), &mut self.withdrawn)
        } else if !self.wants.is_empty() {
            list(query(0, buffer), &mut self.wants)
        } else if std::mem::take(&mut self.sync_due) {
            query(query_flag::SYNC, buffer).finish()
        } else if now >= self.said.saturating_add(KEEPALIVE) {
            query(0, buffer).finish()
        } else {
            return None;
        };
        self.said = now;
        Some(length)
    }

    fn tell(&mut self, resolver: u64, offers: &Offers, buffer: &mut [u8]) -> usize {
        let mut writer = FrameWriter::new(buffer, Kind::Advert, 0, resolver, 0);
        while let Some(&id) = self.ended.first()
            && writer.add_entry(Announcement::end_entry(id), 0).is_some()
        {
            self.ended.pop_first();
        }
        let mut open: Option<(u64, OpenEntry)> = None;
        while let Some(&(id, index)) = self.offers.first() {
            let Some((it, name)) = offers.topic(id, index) else {
                self.offers.pop_first();
                continue;
            };
            if open.as_ref().is_none_or(|(last, _)| *last != id) {
                open = writer.add_entry(it.entry(0), name.len()).map(|entry| (id, entry));
            }
            let Some((_, entry)) = &mut open else { break };
            if !writer.add_entry_name(entry, name) {
                break;
            }
            self.offers.pop_first();
        }
        writer.finish()
    }
}

/// Ends a Query with as many of `names` as fit; the others stay.
fn list(mut query: FrameWriter<'_>, names: &mut BTreeSet<Arc<str>>) -> usize {
    while let Some(name) = names.first()
        && query.add_name(name)
    {
        names.pop_first();
    }
    query.finish()
}
