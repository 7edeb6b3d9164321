//! Sessions of publishers in a run: transports tell stores and receivers of them, behind the
//! messages that were sent before.

use super::actors::Actors;
use super::event::{Event, SessionChange};
use super::timeline::{Timeline, live_to_receiver, live_to_store};
use lanecast_protocol::Nanos;

/// Tells the stores and receivers of a run of the sessions of its publishers.
#[derive(Debug)]
pub(super) struct Sessions<'a> {
    pub(super) actors: &'a mut Actors,
    pub(super) time: &'a mut Timeline,
}

impl Sessions<'_> {
    /// A publisher has started: its session begins everywhere.
    pub(super) fn begin(&mut self, publisher: usize) {
        let session = self.session(publisher);
        self.tell_stores(session, SessionChange::Joined);
        for receiver in 0..self.actors.receivers.len() {
            self.tell_receiver(receiver, session, SessionChange::Joined);
        }
    }

    /// A session has ended: all that take part in it are told.
    pub(super) fn end(&mut self, session: u64) {
        self.tell_stores(session, SessionChange::Left);
        for receiver in 0..self.actors.receivers.len() {
            if !self.actors.receivers[receiver].is_cut_off(session) {
                self.tell_receiver(receiver, session, SessionChange::Left);
            }
        }
    }

    /// A receiver has started: it takes part in all sessions.
    pub(super) fn greet_receiver(&mut self, receiver: usize) {
        for publisher in self.actors.living() {
            self.tell_receiver(receiver, self.session(publisher), SessionChange::Joined);
        }
    }

    /// A store has started: it takes part in all sessions.
    pub(super) fn greet_store(&mut self, store: usize) {
        for publisher in self.actors.living() {
            self.tell_store(store, self.session(publisher), SessionChange::Joined);
        }
    }

    /// A receiver is evicted from all sessions; some let it in again, `later`. Returns the number
    /// of sessions.
    pub(super) fn evict(&mut self, receiver: usize, later: Option<Nanos>) -> u64 {
        let living = self.actors.living();
        for publisher in living.iter().copied() {
            let session = self.session(publisher);
            self.actors.receivers[receiver].cut_off(session);
            self.tell_receiver(receiver, session, SessionChange::CutOff);
            if let Some(later) = later {
                let life = self.actors.receivers[receiver].life;
                self.time.add(later, Event::Readmit { receiver, life, publisher });
            }
        }
        living.len() as u64
    }

    /// A publisher lets a receiver in again that it had evicted.
    pub(super) fn readmit(&mut self, receiver: usize, life: u32, publisher: usize) {
        let (session, process) = (self.session(publisher), &mut self.actors.receivers[receiver]);
        if process.life == life && self.actors.publishers[publisher].is_living() {
            process.let_in(session);
            self.tell_receiver(receiver, session, SessionChange::Joined);
        }
    }

    /// The network around a store is cut for long: its transport takes the publishers for dead, and
    /// finds them again `later`.
    pub(super) fn lose_store(&mut self, store: usize, later: Nanos) {
        for publisher in self.actors.living() {
            self.tell_store(store, self.session(publisher), SessionChange::Left);
            let life = self.actors.stores[store].life;
            self.time.add(later, Event::FindAgain { store, life, publisher });
        }
    }

    /// A store's transport finds a publisher again that it had taken for dead.
    pub(super) fn find_again(&mut self, store: usize, life: u32, publisher: usize) {
        let is_living = self.actors.publishers[publisher].is_living();
        if self.actors.stores[store].life == life && is_living {
            self.tell_store(store, self.session(publisher), SessionChange::Joined);
        }
    }

    fn session(&self, publisher: usize) -> u64 {
        self.actors.publishers[publisher].session
    }

    fn tell_stores(&mut self, session: u64, change: SessionChange) {
        for store in 0..self.actors.stores.len() {
            self.tell_store(store, session, change);
        }
    }

    fn tell_store(&mut self, store: usize, session: u64, change: SessionChange) {
        let life = self.actors.stores[store].life;
        let at = self.time.after_messages(live_to_store(session, store), change);
        let is_there = change == SessionChange::Joined;
        self.time.add(at, Event::SessionAtStore { store, life, session, is_there });
    }

    fn tell_receiver(&mut self, receiver: usize, session: u64, change: SessionChange) {
        let life = self.actors.receivers[receiver].life;
        let at = self.time.after_messages(live_to_receiver(session, receiver), change);
        self.time.add(at, Event::SessionAtReceiver { receiver, life, session, change });
    }
}
