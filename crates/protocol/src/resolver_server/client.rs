//! A client of the daemon: what it wants, and what it has not been told yet.
//!
//! What is to be told is kept as a set of facts, not of bytes: who reads slowly is told what holds
//! when it reads, and costs no more memory than the facts themselves.

use super::publication_table::PublicationTable;
use crate::Nanos;
use crate::resolution::Announcement;
use crate::resolution::terms::{KEEPALIVE, SILENCE};
use lanecast_wire::net::{FrameWriter, Kind, OpenEntry, query_flag};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

/// Questions are answered only while less than this waits to be told.
const ANSWERED_MAX: usize = 1_024;

/// One connection.
#[derive(Debug)]
pub(super) struct Client {
    /// Where it comes from.
    pub(super) from: SocketAddr,
    /// The resolver that it speaks for, once that is known.
    pub(super) resolver: Option<u64>,
    pub(super) wants: BTreeSet<Arc<str>>,
    /// Wanted names whose publishers are to be told.
    questions: BTreeSet<Arc<str>>,
    /// All sessions from this number on are to be told.
    all: Option<u64>,
    /// Sessions of which something else is to be told than another topic.
    changed: BTreeSet<u64>,
    untold: BTreeSet<(u64, Arc<str>)>,
    /// How often a `SYNC` is to be sent back.
    syncs: u32,
    heard: Nanos,
    said: Nanos,
}

impl Client {
    pub(super) const fn new(now: Nanos, from: SocketAddr) -> Self {
        Self {
            from,
            resolver: None,
            wants: BTreeSet::new(),
            questions: BTreeSet::new(),
            all: None,
            changed: BTreeSet::new(),
            untold: BTreeSet::new(),
            syncs: 0,
            heard: now,
            said: now,
        }
    }

    pub(super) const fn heard(&mut self, now: Nanos) {
        self.heard = now;
    }

    pub(super) const fn is_silent(&self, now: Nanos) -> bool {
        now >= self.heard.saturating_add(SILENCE)
    }

    /// It asks who publishes a topic.
    pub(super) fn ask(&mut self, name: Arc<str>) {
        self.questions.insert(name);
    }

    /// It asks for all that is registered.
    pub(super) fn ask_all(&mut self) {
        self.all.get_or_insert(0);
    }

    /// It wants to know when all that it asked for is told.
    pub(super) const fn ask_sync(&mut self) {
        self.syncs = self.syncs.saturating_add(1);
    }

    /// A session has a topic that it wants; gives how much is to be told by now.
    pub(super) fn tell(&mut self, session: u64, name: &Arc<str>) -> usize {
        self.untold.insert((session, Arc::clone(name)));
        self.untold.len()
    }

    /// A session that it may know has ended, is lost, or is back.
    pub(super) fn tell_change(&mut self, session: u64) {
        self.changed.insert(session);
    }

    /// When it has to be heard, or spoken to; `settled` is when the daemon answers `SYNC`.
    pub(super) fn deadline(&self, settled: Nanos) -> Nanos {
        let due = self.heard.saturating_add(SILENCE).min(self.said.saturating_add(KEEPALIVE));
        if self.syncs > 0 { due.min(settled.max(self.said)) } else { due }
    }

    /// Writes the next frame for it: its length, and how many facts it tells.
    pub(super) fn next_frame(
        &mut self,
        now: Nanos,
        settled: Nanos,
        daemon: u64,
        publication_table: &PublicationTable,
        buffer: &mut [u8],
    ) -> Option<(usize, usize)> {
        self.answer(publication_table);
        let frame = if !self.changed.is_empty() || !self.untold.is_empty() {
            self.write(daemon, publication_table, buffer)
        } else {
            None
        };
        let frame = frame.or_else(|| {
            let flags = if self.syncs > 0 && now >= settled {
                self.syncs -= 1;
                query_flag::SYNC
            } else if now >= self.said.saturating_add(KEEPALIVE) {
                0
            } else {
                return None;
            };
            Some((FrameWriter::new(buffer, Kind::Query, flags, daemon, 0).finish(), 0))
        });
        self.said = if frame.is_some() { now } else { self.said };
        frame
    }

    /// Looks up what was asked for, as much as can soon be told.
    fn answer(&mut self, publication_table: &PublicationTable) {
        while self.untold.len() < ANSWERED_MAX {
            if let Some(name) = self.questions.pop_first() {
                let publishers = publication_table.publishers(&name);
                self.untold.extend(publishers.map(|session| (session, Arc::clone(&name))));
            } else if let Some(from) = self.all {
                let next = publication_table.next_session(from);
                if let Some((id, session)) = next {
                    self.untold.extend(session.topics.iter().map(|name| (id, Arc::clone(name))));
                }
                self.all = next.and_then(|(id, _)| id.checked_add(1));
            } else {
                return;
            }
        }
    }

    /// Writes an Advert of as much as fits; none if nothing of it holds any more.
    fn write(
        &mut self,
        daemon: u64,
        publication_table: &PublicationTable,
        buffer: &mut [u8],
    ) -> Option<(usize, usize)> {
        let mut writer = FrameWriter::new(buffer, Kind::Advert, 0, daemon, 0);
        let mut count = 0;
        while let Some(&id) = self.changed.first() {
            let session = publication_table.session(id);
            let entry = session.map_or_else(|| Announcement::end_entry(id), |it| it.entry());
            if writer.add_entry(entry, 0).is_none() {
                break;
            }
            self.changed.pop_first();
            count += 1;
        }
        let mut open: Option<(u64, OpenEntry)> = None;
        while let Some((id, name)) = self.untold.first() {
            let session = publication_table.session(*id);
            // The end of a session is told by itself, and its own sessions a client knows.
            let Some(session) = session.filter(|session| Some(session.owner) != self.resolver)
            else {
                self.untold.pop_first();
                continue;
            };
            if open.as_ref().is_none_or(|(last, _)| last != id) {
                open = writer.add_entry(session.entry(), name.len()).map(|entry| (*id, entry));
            }
            let Some((_, entry)) = &mut open else { break };
            if !writer.add_entry_name(entry, name) {
                break;
            }
            self.untold.pop_first();
            count += 1;
        }
        (count > 0).then(|| (writer.finish(), count))
    }
}
