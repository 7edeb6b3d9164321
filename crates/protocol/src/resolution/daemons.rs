//! A resolver among daemons: each is told everything, and what any of them tells counts.

use super::announcement::Announcement;
use super::link::{DaemonAction, Link};
use super::terms::RejectReason;
use super::{Resolver, ResolverEvent};
use crate::{Nanos, SECOND};
use lanecast_wire::net::{Frame, Kind, advert_flag, adverts, names, query_flag};
use std::net::SocketAddr;
use std::sync::Arc;

/// The shortest pause before a lost session's topics are asked for again, and what chance adds.
const AGAIN: Nanos = SECOND;
const AGAIN_CHANCE: Nanos = 2 * SECOND;

impl Resolver {
    /// There is another daemon; gives its number, counted from 0.
    pub fn add_daemon(&mut self, now: Nanos) -> usize {
        self.links.push(Link::new(now));
        self.links.len() - 1
    }

    /// What is to be done about the connection to a daemon.
    ///
    /// # Panics
    /// If there is no such daemon; so do all that follow.
    pub fn next_daemon_action(&mut self, now: Nanos, daemon: usize) -> Option<DaemonAction> {
        self.links[daemon].act(now, &mut self.rng)
    }

    /// A daemon is connected.
    pub fn daemon_connected(&mut self, now: Nanos, daemon: usize) {
        self.links[daemon].connected(now, self.offers.places(), self.wants.names());
    }

    /// The connection to a daemon is gone, or could not be made.
    pub fn daemon_disconnected(&mut self, now: Nanos, daemon: usize) {
        self.links[daemon].disconnected(now, &mut self.rng);
    }

    /// A frame of a daemon's has come, from the address `from`.
    ///
    /// # Errors
    /// Why the connection is to be closed: the daemon has said so, or makes no sense.
    pub fn on_daemon_frame(
        &mut self,
        now: Nanos,
        daemon: usize,
        from: SocketAddr,
        frame: &Frame<'_>,
    ) -> Result<(), RejectReason> {
        self.now = now;
        self.links[daemon].heard(now);
        match frame.kind {
            Kind::Advert if adverts(frame.body).is_whole() => {
                self.on_daemon_advert(daemon, from, frame);
            }
            Kind::Query if frame.flags & query_flag::SYNC != 0 => {
                for session in self.links[daemon].synced() {
                    self.unvouch(daemon, session);
                }
            }
            Kind::Query if names(frame.body).is_whole() => {}
            Kind::Eject => {
                self.counters.ejected += 1;
                return Err(RejectReason::from_flag(frame.flags).unwrap_or(RejectReason::Malformed));
            }
            _ => return Err(RejectReason::Malformed),
        }
        self.counters.heard += 1;
        Ok(())
    }

    /// The next frame for a daemon, written into `buffer`: its length. To be called again until
    /// there is none, whenever the connection has room.
    ///
    /// # Panics
    /// If the buffer is shorter than 512 bytes.
    pub fn next_daemon_frame(
        &mut self,
        now: Nanos,
        daemon: usize,
        buffer: &mut [u8],
    ) -> Option<usize> {
        assert!(
            buffer.len() >= crate::resolver_server::FRAME_MIN,
            "a buffer of at least 512 bytes"
        );
        self.links[daemon].next_frame(now, self.id, &self.offers, buffer)
    }

    /// When to ask for acts and frames for a daemon at the latest.
    pub fn daemon_deadline(&self, daemon: usize) -> Nanos {
        self.links[daemon].deadline()
    }

    fn on_daemon_advert(&mut self, daemon: usize, from: SocketAddr, frame: &Frame<'_>) {
        for (entry, topics) in adverts(frame.body) {
            let session = entry.session.get();
            if self.offers.has(session) {
                continue;
            }
            if entry.flags & advert_flag::GONE != 0 {
                self.unvouch(daemon, session);
                continue;
            }
            let Some(announcement) = Announcement::read(entry, from) else {
                self.counters.senseless += 1;
                continue;
            };
            self.links[daemon].refresh(session);
            for topic in topics {
                self.find(announcement, None, topic);
                if let Some((topic, known)) = self.wants.publishers(topic)
                    && known.contains(&session)
                {
                    self.links[daemon].vouch(session, topic);
                }
            }
        }
    }

    /// A daemon stands for a session no longer.
    fn unvouch(&mut self, daemon: usize, session: u64) {
        if self.links[daemon].unvouch(session) {
            self.check_word(session);
        }
    }

    /// A topic of a session is wanted no longer.
    pub(super) fn unvouch_topic(&mut self, session: u64, topic: &str) {
        let links = self.links.iter_mut();
        if links.filter_map(|link| link.unvouch_topic(session, topic).then_some(())).count() > 0 {
            self.check_word(session);
        }
    }

    /// Without a daemon that stands for it, and without word from the group, a session is gone.
    fn check_word(&mut self, session: u64) {
        if !self.is_vouched(session) && self.known.is_silent(self.now, session) {
            self.forget(session);
            self.events.push_back(ResolverEvent::Gone { session });
        }
    }

    pub(super) fn is_vouched(&self, session: u64) -> bool {
        self.links.iter().any(|link| link.vouches_for(session))
    }

    /// A session is forgotten, whoever stands for it.
    pub(super) fn unvouch_all(&mut self, session: u64) {
        for link in &mut self.links {
            link.unvouch(session);
        }
    }

    /// Whoever may know of a lost session is asked again, after a pause.
    pub(super) fn ask_again(&mut self, session: u64, topics: impl Iterator<Item = Arc<str>>) {
        self.unvouch_all(session);
        self.again.extend(topics);
        if self.again_due.is_none() && !self.again.is_empty() {
            let pause = AGAIN + self.rng.below(AGAIN_CHANCE);
            self.again_due = Some(self.now.saturating_add(pause));
        }
    }

    /// Asks for the topics of lost sessions, if it is time.
    pub(super) fn ask_for_lost(&mut self, now: Nanos) {
        if self.again_due.is_none_or(|due| due > now) {
            return;
        }
        self.again_due = None;
        for topic in std::mem::take(&mut self.again) {
            if self.wants.publishers(&topic).is_none() {
                continue;
            }
            self.links.iter_mut().for_each(|link| link.subscribe(&topic));
            self.find_own(&topic);
        }
    }
}
