//! One client of the resolver server: its subscriptions, and the publications still to send.
//!
//! A set of publications is queued, not bytes: a client that reads slowly gets the state as of its
//! reading. Both sets, of publications and of changed sessions, are bounded by the server.

use super::publication_table::PublicationTable;
use crate::Nanos;
use crate::resolution::Announcement;
use crate::resolution::session_constants::{KEEPALIVE, SILENCE};
use lanecast_wire::net::{FrameWriter, Kind, OpenEntry, query_flag};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::Bound;
use std::sync::Arc;

/// Queries are answered only while fewer publications than this are queued.
const QUEUED_MAX: usize = 1_024;
/// Most names looked at for one frame: a prefix may be that of many names without publishers.
const LOOKS_MAX: usize = 4_096;

/// A client.
#[derive(Debug)]
pub(super) struct Client {
    /// Address of the client.
    pub(super) from: SocketAddr,
    /// Resolver of the client, once known.
    pub(super) resolver: Option<u64>,
    pub(super) subscriptions: BTreeSet<Arc<str>>,
    /// Prefixes of further topics.
    pub(super) prefixes: BTreeSet<Arc<str>>,
    /// Topics whose publishers are to be queued.
    queries: BTreeSet<Arc<str>>,
    /// Prefixes whose topics are to be queued, and the last name that was.
    prefix_queries: BTreeMap<Arc<str>, Option<Arc<str>>>,
    /// Number from which all sessions are to be queued.
    all: Option<u64>,
    /// Sessions that have ended, are lost, or are back.
    changed: BTreeSet<u64>,
    queue: BTreeSet<(u64, Arc<str>)>,
    /// Number of `SYNC` answers to send.
    syncs: u32,
    heard_at: Nanos,
    sent_at: Nanos,
}

impl Client {
    pub(super) const fn new(now: Nanos, from: SocketAddr) -> Self {
        Self {
            from,
            resolver: None,
            subscriptions: BTreeSet::new(),
            prefixes: BTreeSet::new(),
            queries: BTreeSet::new(),
            prefix_queries: BTreeMap::new(),
            all: None,
            changed: BTreeSet::new(),
            queue: BTreeSet::new(),
            syncs: 0,
            heard_at: now,
            sent_at: now,
        }
    }

    pub(super) const fn on_heard(&mut self, now: Nanos) {
        self.heard_at = now;
    }

    pub(super) const fn is_silent(&self, now: Nanos) -> bool {
        now >= self.heard_at.saturating_add(SILENCE)
    }

    /// The client queries for a topic.
    pub(super) fn on_query(&mut self, name: Arc<str>) {
        self.queries.insert(name);
    }

    /// The client queries for all topics with a prefix.
    pub(super) fn on_prefix_query(&mut self, prefix: Arc<str>) {
        self.prefix_queries.insert(prefix, None);
    }

    /// The client withdraws its query for a topic; returns whether it had subscribed.
    pub(super) fn withdraw(&mut self, name: &str) -> bool {
        self.queries.remove(name);
        self.subscriptions.remove(name)
    }

    /// The client withdraws its query for a prefix; returns whether it had subscribed.
    pub(super) fn withdraw_prefix(&mut self, prefix: &str) -> bool {
        self.prefix_queries.remove(prefix);
        self.prefixes.remove(prefix)
    }

    /// The client queries for all publications.
    pub(super) fn on_query_all(&mut self) {
        self.all.get_or_insert(0);
    }

    /// The client asks for a `SYNC` after all answers.
    pub(super) const fn on_sync(&mut self) {
        self.syncs = self.syncs.saturating_add(1);
    }

    /// Queues a publication; returns the length of the queue.
    pub(super) fn queue(&mut self, session: u64, name: &Arc<str>) -> usize {
        self.queue.insert((session, Arc::clone(name)));
        self.queue.len()
    }

    /// Queues a change of a session: ended, lost, or back; returns the number of changes.
    pub(super) fn notify_change(&mut self, session: u64) -> usize {
        self.changed.insert(session);
        self.changed.len()
    }

    /// Time of the next keepalive, timeout or `SYNC`; the server answers those from `settled` on.
    /// The present, while answers are to be looked up.
    pub(super) fn deadline(&self, settled: Nanos) -> Nanos {
        if !self.is_looked_up() {
            return self.sent_at;
        }
        let due = self.heard_at.saturating_add(SILENCE).min(self.sent_at.saturating_add(KEEPALIVE));
        // A SYNC waits until the daemon has settled: before that, absence proves nothing.
        if self.syncs > 0 { due.min(settled.max(self.sent_at)) } else { due }
    }

    /// Whether the answers to all queries so far were looked up.
    fn is_looked_up(&self) -> bool {
        self.queries.is_empty() && self.prefix_queries.is_empty() && self.all.is_none()
    }

    /// Writes the next frame; returns its length and the number of entries and names.
    pub(super) fn next_frame(
        &mut self,
        now: Nanos,
        settled: Nanos,
        daemon: u64,
        table: &PublicationTable,
        buffer: &mut [u8],
    ) -> Option<(usize, usize)> {
        let advert = self.next_advert(daemon, table, buffer);
        let frame = advert.or_else(|| {
            // After all entries only: a SYNC says that the answers are complete.
            let flags = if self.syncs > 0 && now >= settled && self.is_looked_up() {
                self.syncs -= 1;
                query_flag::SYNC
            } else if now >= self.sent_at.saturating_add(KEEPALIVE) {
                0
            } else {
                return None;
            };
            Some((FrameWriter::new(buffer, Kind::Query, flags, daemon, 0).finish(), 0))
        });
        self.sent_at = if frame.is_some() { now } else { self.sent_at };
        frame
    }

    /// Writes the next Advert, with answers of as many looks as one frame has; `None` if there is
    /// nothing to tell, or too much to look up for one frame.
    fn next_advert(
        &mut self,
        daemon: u64,
        table: &PublicationTable,
        buffer: &mut [u8],
    ) -> Option<(usize, usize)> {
        let mut looks = LOOKS_MAX;
        loop {
            self.queue_answers(table, &mut looks);
            if self.changed.is_empty() && self.queue.is_empty() {
                return None;
            }
            let advert = self.write_advert(daemon, table, buffer);
            // The queue may have had nothing but the client's own sessions.
            if advert.is_some() || looks == 0 {
                return advert;
            }
        }
    }

    /// Looks up the answers to queries, as far as the queue has room and there are `looks` left.
    fn queue_answers(&mut self, table: &PublicationTable, looks: &mut usize) {
        // Answers are looked up as the client reads: a query for everything costs little memory.
        while self.queue.len() < QUEUED_MAX && *looks > 0 {
            *looks -= 1;
            if let Some(name) = self.queries.pop_first() {
                let publishers = table.publishers(&name);
                self.queue.extend(publishers.map(|session| (session, Arc::clone(&name))));
            } else if let Some(mut query) = self.prefix_queries.first_entry() {
                let (prefix, last) = (Arc::clone(query.key()), query.get().clone());
                let from = last.as_deref().map_or(Bound::Included(&*prefix), Bound::Excluded);
                let Some((name, publishers)) = table.next_topic(&prefix, from) else {
                    query.remove();
                    continue;
                };
                self.queue.extend(publishers.map(|session| (session, Arc::clone(name))));
                query.insert(Some(Arc::clone(name)));
            } else if let Some(from) = self.all {
                let next = table.next_session(from);
                if let Some((id, session)) = next {
                    self.queue.extend(session.topics.iter().map(|name| (id, Arc::clone(name))));
                }
                self.all = next.and_then(|(id, _)| id.checked_add(1));
            } else {
                return;
            }
        }
    }

    /// Writes an Advert with as much as fits; `None` if all queued entries are outdated.
    fn write_advert(
        &mut self,
        daemon: u64,
        table: &PublicationTable,
        buffer: &mut [u8],
    ) -> Option<(usize, usize)> {
        let mut writer = FrameWriter::new(buffer, Kind::Advert, 0, daemon, 0);
        let mut count = 0;
        while let Some(&id) = self.changed.first() {
            let session = table.session(id);
            // The present state counts: a session may have come back since it was queued.
            let entry = session.map_or_else(|| Announcement::end_entry(id), |it| it.entry());
            // Kept for the next frame.
            if writer.add_entry(entry, 0).is_none() {
                break;
            }
            self.changed.pop_first();
            count += 1;
        }
        let mut open: Option<(u64, OpenEntry)> = None;
        while let Some((id, name)) = self.queue.first() {
            let session = table.session(*id);
            // Ended sessions are announced as changes, and a client knows its own.
            let Some(session) = session.filter(|session| Some(session.owner) != self.resolver)
            else {
                self.queue.pop_first();
                continue;
            };
            if open.as_ref().is_none_or(|(last, _)| last != id) {
                open = writer.add_entry(session.entry(), name.len()).map(|entry| (*id, entry));
            }
            let Some((_, entry)) = &mut open else { break };
            if !writer.add_entry_name(entry, name) {
                break;
            }
            self.queue.pop_first();
            count += 1;
        }
        (count > 0).then(|| (writer.finish(), count))
    }
}
