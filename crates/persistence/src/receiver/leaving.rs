//! The end of a receiver's registration: which stores have confirmed it.

use super::incoming::Incoming;
use super::known_store::{KnownStore, answered, member};
use super::report::Report;
use super::settings::ReceiverSettings;
use crate::Nanos;
use crate::outlet::ReceiverOutlet;
use lanecast_wire::store::StoreFrame;
use std::collections::BTreeMap;

/// Confirmation that a receiver's registration has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detachment {
    /// Every store has ended it, on its disk: nothing is kept for the receiver any more.
    Everywhere,
    /// Enough stores have: no publisher is held back by the receiver. Others have not answered.
    Enough {
        /// Stores that may still keep messages for it, until they hear of the end from another
        /// store. They may tell a later life with the same id where this one had come to.
        unconfirmed: Vec<String>,
    },
    /// Too few stores have: the receiver may hold publishers back.
    TooFew {
        /// Stores that have not answered.
        unconfirmed: Vec<String>,
    },
}

/// The streams of a receiver, with what it reports of each.
pub(super) type Streams = BTreeMap<u64, (Incoming, Report)>;

/// A receiver that gives up its registration in all streams of its topic.
#[derive(Clone, Debug)]
pub(super) struct Leaving {
    /// The last question before. Answers to later ones name all streams in which it is registered.
    since: u64,
    /// When to tell the stores.
    pub(super) at: Nanos,
    /// Life that each store has ended, by stream.
    ended: BTreeMap<u64, Vec<Option<u64>>>,
}

impl Leaving {
    /// A receiver that leaves now, after the question `since`.
    pub(super) const fn new(since: u64, now: Nanos) -> Self {
        Self { since, at: now, ended: BTreeMap::new() }
    }

    /// A store has ended the registration in a stream.
    pub(super) fn on_detached(&mut self, (stores, store): (usize, usize), source: u64, life: u64) {
        let ended = self.ended.entry(source).or_insert_with(|| vec![None; stores]);
        ended[store] = ended[store].max(Some(life));
    }

    /// A store offers a stream. If that is new, all stores are told soon; so is a store
    /// with which the receiver `is_registered` after all.
    pub(super) fn on_offered(
        &mut self,
        store: usize,
        source: u64,
        is_registered: bool,
        now: Nanos,
    ) {
        let is_due = match self.ended.get_mut(&source) {
            Some(ended) => is_registered && ended[store].take().is_some(),
            None => true,
        };
        if is_due {
            self.at = now;
        }
    }

    /// Tells the stores that have not confirmed it, if it is time to.
    pub(super) fn tell(
        &mut self,
        streams: &Streams,
        (settings, receiver): (&ReceiverSettings, u64),
        now: Nanos,
        out: &mut dyn ReceiverOutlet,
    ) {
        if now < self.at {
            return;
        }
        self.at = now + settings.retry;
        let stores = settings.stores.names().count();
        for (source, (incoming, report)) in streams {
            self.ended.entry(*source).or_insert_with(|| vec![None; stores]);
            let life = life(incoming, report, settings);
            let frame = StoreFrame::Detach { receiver, life };
            let unconfirmed = (0..stores).filter(|store| !self.has_ended(*store, *source, life));
            unconfirmed.for_each(|store| out.request(store, *source, &frame));
        }
    }

    fn has_ended(&self, store: usize, source: u64, life: u64) -> bool {
        self.ended.get(&source).is_some_and(|ended| ended[store] >= Some(life))
    }

    /// Confirmations so far.
    pub(super) fn detachment(
        &self,
        stores: &[KnownStore],
        streams: &Streams,
        settings: &ReceiverSettings,
    ) -> Detachment {
        let is_asked = |store: usize| stores[store].answered > self.since;
        let has_ended = |store: usize, source: u64, (incoming, report): &(Incoming, Report)| {
            self.has_ended(store, source, life(incoming, report, settings))
        };
        let is_confirmed = |store: usize| {
            is_asked(store) && streams.iter().all(|(source, it)| has_ended(store, *source, it))
        };
        let listed = (0..stores.len()).filter(|store| !is_confirmed(*store));
        let mut unconfirmed: Vec<String> = listed.map(|it| stores[it].name.clone()).collect();
        let members = streams.values().filter_map(|(it, _)| it.offers.members());
        for (name, _) in members.flat_map(|members| &members.stores) {
            if settings.stores.index(name).is_none() && !unconfirmed.contains(name) {
                unconfirmed.push(name.clone());
            }
        }
        let is_enough = |(source, it): (&u64, &(Incoming, Report))| {
            let offers = &it.0.offers;
            let Some(members) = offers.members() else {
                let has_told = |store: usize| answered(stores, offers, store) > self.since;
                return !offers.has_run() && settings.stores.is_recovery_quorum(has_told);
            };
            members.is_write_quorum(|name, incarnation| {
                let store = member(stores, name, incarnation);
                store.is_some_and(|store| has_ended(store, *source, it))
            })
        };
        if unconfirmed.is_empty() {
            Detachment::Everywhere
        } else if settings.stores.is_recovery_quorum(is_asked) && streams.iter().all(is_enough) {
            Detachment::Enough { unconfirmed }
        } else {
            Detachment::TooFew { unconfirmed }
        }
    }
}

/// Whether nothing more is to be waited for: stores that have not confirmed it do not answer, or
/// are not named by the receiver.
pub(super) fn is_final(detachment: &Detachment, stores: &[KnownStore]) -> bool {
    let is_away = |name: &String| stores.iter().all(|store| store.name != *name || store.is_lost);
    match detachment {
        Detachment::Everywhere => true,
        Detachment::Enough { unconfirmed } => unconfirmed.iter().all(is_away),
        Detachment::TooFew { .. } => false,
    }
}

/// The life that ends in a stream: this one, or a later one that a store knows.
fn life(incoming: &Incoming, report: &Report, settings: &ReceiverSettings) -> u64 {
    let own = match incoming.has_begun {
        true => report.life,
        // A replay takes part in the life that it finds.
        false if settings.is_replay => 0,
        false => settings.life,
    };
    let registered = incoming.offers.iter().filter(|offer| offer.consumption.is_some());
    registered.map(|offer| offer.life).max().unwrap_or(0).max(own)
}
