//! The processes of a run: stores, publishers and receivers.

use super::collected::{SOURCE, TOPIC};
use super::departures::{depart, is_waited_for};
use super::oracle::Oracle;
use super::outcome::StoreOutcome;
use super::processes::{PublisherProcess, StoreProcess};
use super::receivers::ReceiverProcess;
use super::scenario::StoreScenario;
use super::tamper::StoreTamper;
use crate::rng::SimRng;
use crate::violation::Verdict;
use lanecast_protocol::Nanos;
use lanecast_wire::store::StoreState;

/// All processes of a run, by their indexes.
#[derive(Debug)]
pub(super) struct Actors {
    pub(super) stores: Vec<StoreProcess>,
    /// Each run of the publisher is another.
    pub(super) publishers: Vec<PublisherProcess>,
    pub(super) receivers: Vec<ReceiverProcess>,
}

impl Actors {
    /// The stores and receivers of a scenario: none has started.
    pub(super) fn new(scenario: &StoreScenario, rng: &mut SimRng) -> Self {
        let store = |_| StoreProcess::new(scenario, rng.any());
        Self {
            stores: scenario.names().into_iter().map(store).collect(),
            publishers: Vec::new(),
            receivers: (0..scenario.receivers).map(|_| ReceiverProcess::default()).collect(),
        }
    }

    /// The publishers that run, and that no other has taken over from.
    pub(super) fn living(&self) -> Vec<usize> {
        (0..self.publishers.len()).filter(|index| self.publishers[*index].is_living()).collect()
    }

    /// Whether a living publisher has come to its end.
    pub(super) fn is_drained(&self) -> bool {
        self.living().iter().any(|index| self.publishers[*index].is_drained())
    }

    /// Whether publishers and receivers have all that they wait for.
    pub(super) fn are_complete(&self, oracle: &Oracle, scenario: &StoreScenario) -> bool {
        // Stores that a receiver does not name know nothing of its end.
        let is_awaited = !scenario.has_lists() && !scenario.may_wipe;
        let will_consume = is_awaited && self.receivers.iter().all(ReceiverProcess::will_consume);
        let is_consumed = |it: &usize| self.publishers[*it].is_consumed();
        self.receivers.iter().all(|it| it.is_complete(oracle))
            && self.is_drained()
            && (!will_consume || self.living().iter().any(is_consumed))
            && (!is_awaited || !self.waits_for_gone())
    }

    /// Whether a store keeps messages for a receiver that has left.
    fn waits_for_gone(&self) -> bool {
        let mut receivers = (0..).zip(&self.receivers);
        receivers.any(|(id, it)| is_waited_for(it, id, &self.stores))
    }

    /// Receivers that take part in the topic, by their ids.
    pub(super) fn staying(&self) -> Vec<u64> {
        let receivers = (0..).zip(&self.receivers);
        receivers.filter(|(_, it)| it.is_staying()).map(|(id, _)| id).collect()
    }

    /// Ends a receiver that has left, when that is confirmed; returns whether a later life is to
    /// begin.
    pub(super) fn depart(&mut self, receiver: usize, outcome: &mut StoreOutcome) -> Verdict<bool> {
        depart(&mut self.receivers[receiver], receiver as u64, &self.stores, outcome)
    }

    /// The state of a store's disk.
    pub(super) fn state(&self, store: usize) -> Option<StoreState> {
        self.stores[store].restored().state(TOPIC, SOURCE)
    }

    /// Whether a store is the last whose disk has members of the stream.
    pub(super) fn is_last_to_know(&self, store: usize) -> bool {
        let knows = |other: usize| {
            other != store && self.state(other).is_some_and(|state| state.members.version > 0)
        };
        !(0..self.stores.len()).any(knows)
    }

    /// Whether nothing reaches a store, and nothing leaves it.
    pub(super) fn is_cut(&self, store: usize, now: Nanos) -> bool {
        self.stores[store].cut_until > now
    }

    /// A store's process dies, and all see that; returns whether it lived.
    pub(super) fn crash_store(
        &mut self,
        store: usize,
        rng: &mut SimRng,
        tamper: StoreTamper,
    ) -> bool {
        if !self.stores[store].crash(rng, tamper) {
            return false;
        }
        self.publishers.iter_mut().for_each(|it| it.on_disconnected(store));
        self.receivers.iter_mut().for_each(|it| it.on_disconnected(store));
        true
    }

    /// The living publishers are about to end: a receiver that takes part in all of their sessions
    /// has to be told, if its last message is of one of them.
    pub(super) fn expect_left(&mut self, receiver: usize) {
        let living = self.living();
        let mut sessions = living.iter().map(|it| self.publishers[*it].session);
        let process = &self.receivers[receiver];
        // Stores may have taken the publisher for dead, and told its end before.
        let last = process.last_session();
        // Of the others it has no message.
        let is_last = sessions.clone().any(|it| Some(it) == last);
        if is_last && !sessions.any(|it| process.is_cut_off(it)) {
            self.receivers[receiver].expect_left();
        }
    }
}
