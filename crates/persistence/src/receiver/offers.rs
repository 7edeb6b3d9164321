//! Offers of a stream: each store's last word, and what all of them tell together.

use super::untold::UntoldStates;
use crate::quorum::StoreGroups;
use lanecast_wire::store::{Ballot, Members, StoreOffer, StoreState};

/// The last offer of each store, by its index.
#[derive(Clone, Debug)]
pub(super) struct Offers {
    last: Vec<Option<StoreOffer>>,
    /// The state that a store told before its connection ended. That was on its disk: members
    /// decide, and messages may come back, whether the store is there or not.
    recorded: Vec<Option<StoreState>>,
    /// Stores that name the stream and cannot tell its state now.
    pub(super) untold: UntoldStates,
}

impl Offers {
    /// No offer of any of these stores.
    pub(super) fn new(stores: usize) -> Self {
        let untold = UntoldStates::new(stores);
        Self { last: vec![None; stores], recorded: vec![None; stores], untold }
    }

    /// A store offers the stream.
    pub(super) fn set(&mut self, store: usize, offer: StoreOffer) {
        (self.last[store], self.recorded[store]) = (Some(offer), None);
        self.untold.forget(store);
    }

    /// The connection to a store has ended: nothing can be asked of it, and what is not on its
    /// disk may be void.
    pub(super) fn on_disconnected(&mut self, store: usize) {
        if let Some(offer) = self.last[store].take() {
            self.recorded[store] = Some(offer.state);
        }
        self.untold.forget(store);
    }

    /// A store has answered with this data: what it told of other data is void.
    pub(super) fn on_incarnation(&mut self, store: usize, incarnation: u64) {
        self.last[store].take_if(|offer| offer.state.incarnation != incarnation);
        self.recorded[store].take_if(|state| state.incarnation != incarnation);
    }

    /// The offer of a store.
    pub(super) fn of(&self, store: usize) -> Option<&StoreOffer> {
        self.last[store].as_ref()
    }

    /// The same, to bring it up to date.
    pub(super) fn of_mut(&mut self, store: usize) -> Option<&mut StoreOffer> {
        self.last[store].as_mut()
    }

    /// All offers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &StoreOffer> + Clone {
        self.last.iter().flatten()
    }

    /// All offers, with the indexes of their stores.
    pub(super) fn by_store(&self) -> impl Iterator<Item = (usize, &StoreOffer)> {
        self.last.iter().enumerate().filter_map(|(store, offer)| Some((store, offer.as_ref()?)))
    }

    /// The offers of this log.
    pub(super) fn of_log(&self, log: Ballot) -> impl Iterator<Item = &StoreOffer> + Clone {
        self.iter().filter(move |offer| offer.state.log == log)
    }

    /// The offer of the latest log.
    pub(super) fn latest(&self) -> Option<&StoreOffer> {
        self.iter().max_by_key(|offer| (offer.state.log, offer.state.next))
    }

    /// The latest members that a store has told: those of the latest run.
    pub(super) fn members(&self) -> Option<&Members> {
        let told = self.told().filter(|state| state.members.version > 0);
        told.max_by_key(|state| (state.log, state.members.version)).map(|state| &state.members)
    }

    /// States of all stores that have told one, whether they are there or not.
    pub(super) fn told(&self) -> impl Iterator<Item = &StoreState> {
        self.told_by_store().map(|(_, state)| state)
    }

    /// The same, with the indexes of the stores.
    fn told_by_store(&self) -> impl Iterator<Item = (usize, &StoreState)> {
        self.by_store().map(|(store, offer)| (store, &offer.state)).chain(self.away())
    }

    /// The same of stores that count, and that are there, or may soon come back.
    pub(super) fn told_by(
        &self,
        is_awaited: impl Fn(usize) -> bool,
    ) -> impl Iterator<Item = &StoreState> {
        let counts = move |store: usize| is_awaited(store) && self.untold.may_bring(store);
        self.told_by_store().filter(move |(store, _)| counts(*store)).map(|(_, state)| state)
    }

    /// States of the stores that are away, with their indexes.
    pub(super) fn away(&self) -> impl Iterator<Item = (usize, &StoreState)> {
        self.recorded.iter().enumerate().filter_map(|(store, it)| Some((store, it.as_ref()?)))
    }

    /// The offer of a member, if its store has the member's data.
    pub(super) fn of_member(
        &self,
        stores: &StoreGroups,
        name: &str,
        incarnation: u64,
    ) -> Option<&StoreOffer> {
        let offer = self.last.get(stores.index(name)?)?.as_ref();
        offer.filter(|offer| offer.state.incarnation == incarnation)
    }

    /// Whether a store has begun a run: without one there is nothing to follow.
    pub(super) fn has_run(&self) -> bool {
        self.told().any(|state| !state.runs.is_empty())
    }

    /// Whether the receiver counts no longer, since it was away for too long: so many members say
    /// so that they decide.
    pub(super) fn is_expired(&self, stores: &StoreGroups) -> bool {
        let is_expired = |name: &str, incarnation| {
            self.of_member(stores, name, incarnation).is_some_and(|offer| offer.is_expired)
        };
        self.members().is_some_and(|members| members.is_write_quorum(is_expired))
    }

    /// Whether the publisher of a run has registered it.
    pub(super) fn is_live(&self, run: Ballot) -> bool {
        self.of_log(run).any(|offer| offer.is_live)
    }

    /// Whether every later run goes on with the run of an offer: its publisher has registered it,
    /// or enough members have begun it. A run that a few stores have begun and no publisher goes
    /// on with may give way to another one.
    pub(super) fn is_decided(&self, stores: &StoreGroups, of: &StoreOffer) -> bool {
        let log = of.state.log;
        let has_begun = |name: &str, incarnation| {
            let offer = self.of_member(stores, name, incarnation);
            offer.is_some_and(|offer| offer.state.log == log)
        };
        let have_begun = || self.members().is_some_and(|it| it.is_write_quorum(has_begun));
        of.is_live || has_messages(of) || have_begun()
    }

    /// Whether a store has seen the publisher of a run leave, and so many members of the run have,
    /// or have not heard of it since they started, that it could not go on without one of them.
    pub(super) fn has_left(&self, stores: &StoreGroups, run: Ballot) -> bool {
        let is_gone = |offer: &StoreOffer| offer.state.log == run && !hears(offer);
        self.of_log(run).any(|offer| offer.has_left)
            && self.is_without(stores, |_, _, offer| is_gone(offer))
    }

    /// Whether so many members that count hear no publisher of a run that it could not go on
    /// without one of them. Some may be about to begin the run.
    pub(super) fn is_unheard(
        &self,
        stores: &StoreGroups,
        run: Ballot,
        counts: impl Fn(&str, u64) -> bool,
    ) -> bool {
        self.is_without(stores, |name, incarnation, offer| {
            offer.state.log <= run && !hears(offer) && counts(name, incarnation)
        })
    }

    fn is_without(
        &self,
        stores: &StoreGroups,
        is_gone: impl Fn(&str, u64, &StoreOffer) -> bool,
    ) -> bool {
        let is_gone = |name: &str, incarnation| {
            let offer = self.of_member(stores, name, incarnation);
            offer.is_some_and(|offer| is_gone(name, incarnation, offer))
        };
        self.members().is_some_and(|members| members.is_recovery_quorum(is_gone))
    }

    /// Whether a store that counts may still get messages of a run.
    pub(super) fn may_grow(&self, run: Ballot, counts: impl Fn(usize) -> bool) -> bool {
        let counts = |store: usize| counts(store) && self.untold.may_bring(store);
        let mut offers = self.by_store().filter(|(store, _)| counts(*store));
        offers.any(|(_, offer)| offer.state.log == run && hears(offer))
    }
}

/// Whether a store has messages of its last run: a publisher sends when its run is registered.
fn has_messages(offer: &StoreOffer) -> bool {
    offer.state.runs.last().is_some_and(|run| offer.state.next > run.start)
}

/// Whether a store has heard the publisher of its run, and not seen it leave.
const fn hears(offer: &StoreOffer) -> bool {
    offer.is_live && !offer.has_left
}
