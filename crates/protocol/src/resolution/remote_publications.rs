//! Remote publications: sessions of other processes that publish topics subscribed to here.

use super::announcement::Announcement;
use super::tombstones::Tombstones;
use crate::{Nanos, SECOND};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// A session that is not advertised in the group for this long expires.
const EXPIRY: Nanos = 30 * SECOND;
/// One address may have this share of all topics: it cannot use up those of others.
const ADDRESS_SHARE: usize = 4;
/// Interval of the search for expired sessions.
const SWEEP: Nanos = 5 * SECOND;

/// Sessions with their subscribed topics; no others are kept.
#[derive(Debug)]
pub(super) struct RemotePublications {
    sessions: BTreeMap<u64, Session>,
    topics: usize,
    topics_max: usize,
    /// Topics that were removed so far.
    removed: u64,
    /// Topics of the sessions at each address.
    addresses: BTreeMap<IpAddr, usize>,
    /// Ended sessions.
    closed: Tombstones,
    next_sweep: Nanos,
}

#[derive(Debug)]
struct Session {
    announcement: Announcement,
    /// First resolver that advertised it in the group, and the time of the last Advert there.
    advertised: Option<(u64, Nanos)>,
    topics: BTreeSet<Arc<str>>,
}

/// Why a topic of a session is not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddError {
    /// The session has closed.
    Closed,
    /// The limit of topics is reached.
    Full,
}

impl RemotePublications {
    pub(super) fn new(topics_max: usize, now: Nanos) -> Self {
        Self {
            sessions: BTreeMap::new(),
            topics: 0,
            topics_max,
            removed: 0,
            addresses: BTreeMap::new(),
            closed: Tombstones::default(),
            next_sweep: now.saturating_add(SWEEP),
        }
    }

    /// A session was advertised in the group.
    pub(super) fn refresh(&mut self, now: Nanos, session: u64, announcer: u64) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.advertised.get_or_insert((announcer, now)).1 = now;
        }
    }

    /// Whether a session was not advertised in the group for so long that it expires.
    pub(super) fn is_silent(&self, now: Nanos, session: u64) -> bool {
        self.sessions.get(&session).is_some_and(|session| session.is_silent(now))
    }

    /// Adds a topic of a session, advertised by `announcer` in the group, or by a daemon. Returns
    /// the session's announcement: the first one counts until the session is lost.
    pub(super) fn add(
        &mut self,
        now: Nanos,
        announcement: Announcement,
        announcer: Option<u64>,
        name: &Arc<str>,
    ) -> Result<Announcement, AddError> {
        let id = announcement.session;
        // Adverts from before the end may come after it: they must not revive the session.
        if announcer.is_some_and(|announcer| self.closed.covers(now, (id, announcer))) {
            return Err(AddError::Closed);
        }
        // Any host may advertise: memory is bounded.
        let address = announcement.control.ip();
        let there = self.addresses.get(&address).copied().unwrap_or_default();
        if self.topics >= self.topics_max || there >= self.topics_max.div_ceil(ADDRESS_SHARE) {
            return Err(AddError::Full);
        }
        let topics = BTreeSet::new();
        let session = self.sessions.entry(id);
        let session = session.or_insert(Session { announcement, advertised: None, topics });
        let is_new = session.topics.insert(Arc::clone(name));
        // The first announcement holds: another host cannot redirect a known session.
        let announcement = session.announcement;
        if is_new {
            self.topics += 1;
            *self.addresses.entry(announcement.control.ip()).or_default() += 1;
        }
        if let Some(announcer) = announcer {
            self.refresh(now, id, announcer);
        }
        Ok(announcement)
    }

    /// Announcement of a session.
    pub(super) fn announcement(&self, session: u64) -> Option<Announcement> {
        self.sessions.get(&session).map(|session| session.announcement)
    }

    /// Number of topics that were removed so far: each made room.
    pub(super) const fn removed(&self) -> u64 {
        self.removed
    }

    /// Removes a topic that is no longer subscribed to.
    pub(super) fn remove_topic(&mut self, id: u64, name: &str) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let removed = usize::from(session.topics.remove(name));
        let address = session.announcement.control.ip();
        if session.topics.is_empty() {
            self.sessions.remove(&id);
        }
        self.subtract(address, removed);
    }

    /// Subtracts topics of sessions at `address`.
    fn subtract(&mut self, address: IpAddr, removed: usize) {
        self.topics -= removed;
        self.removed += removed as u64;
        if let Some(there) = self.addresses.get_mut(&address) {
            *there -= removed;
            if *there == 0 {
                self.addresses.remove(&address);
            }
        }
    }

    /// Removes a session; returns its topics.
    pub(super) fn remove(&mut self, id: u64) -> BTreeSet<Arc<str>> {
        let Some(Session { announcement, topics, .. }) = self.sessions.remove(&id) else {
            return BTreeSet::new();
        };
        self.subtract(announcement.control.ip(), topics.len());
        topics
    }

    /// Removes a session if its end is announced by the resolver that advertised it; returns its
    /// topics.
    pub(super) fn close(
        &mut self,
        now: Nanos,
        id: u64,
        announcer: u64,
    ) -> Option<BTreeSet<Arc<str>>> {
        let session = self.sessions.get(&id)?;
        // Only its first announcer may end a session: others may not end it for all.
        session.advertised.filter(|(first, _)| *first == announcer)?;
        self.closed.add(now, (id, announcer), session.announcement.control.ip());
        Some(self.remove(id))
    }

    /// Time of the next search for expired sessions.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        (!self.sessions.is_empty()).then_some(self.next_sweep)
    }

    /// Expired sessions.
    pub(super) fn sweep(&mut self, now: Nanos) -> Vec<u64> {
        if now < self.next_sweep {
            return Vec::new();
        }
        self.next_sweep = now.saturating_add(SWEEP);
        self.closed.sweep(now);
        let silent = self.sessions.iter().filter(|(_, session)| session.is_silent(now));
        silent.map(|(id, _)| *id).collect()
    }
}

impl Session {
    fn is_silent(&self, now: Nanos) -> bool {
        self.advertised.is_none_or(|(_, heard)| now.saturating_sub(heard) > EXPIRY)
    }
}
