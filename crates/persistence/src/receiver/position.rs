//! A receiver's position in a stream, as its stores know it.

use super::incoming::Incoming;
use super::known_store::{KnownStore, answered, member};
use crate::quorum::StoreGroups;
use lanecast_wire::store::Consumption;

/// Knowledge of a stream's stores about a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownPosition {
    /// The furthest position of its last life; `None` if it is not registered.
    pub(super) consumption: Option<Consumption>,
    /// That life; the latest one of others if it is not registered.
    pub(super) life: u64,
}

/// The position that the stores know, if enough of them have answered.
pub(super) fn position(
    stores: &[KnownStore],
    groups: &StoreGroups,
    incoming: &Incoming,
) -> Option<KnownPosition> {
    let members = incoming.offers.members()?;
    let has_answered = |store| answered(stores, &incoming.offers, store) >= incoming.seen;
    let answering = |name: &str, it| member(stores, name, it).filter(|store| has_answered(*store));
    let is_member = |name: &str, incarnation| answering(name, incarnation).is_some();
    // Registrations are not copied: a store that joined later may lack those of receivers that
    // were away, until it has one.
    let has_kept = |name: &str, incarnation| {
        let offer = answering(name, incarnation).map(|store| incoming.offers.of(store));
        let is_registered = offer.flatten().is_some_and(|it| it.consumption.is_some());
        offer.is_some() && (is_registered || !members.may_have_joined_late(name))
    };
    // Data that is gone for good is not waited for: its store answers with other data, or is
    // no member any more.
    let is_silent = |(name, _): &(String, u64)| {
        let store = groups.index(name);
        store.is_none_or(|store| !has_answered(store))
    };
    let is_decided = members.is_recovery_quorum(is_member)
        && (members.is_recovery_quorum(has_kept) || !members.stores.iter().any(is_silent));
    if !incoming.offers.has_run() || !is_decided {
        return None;
    }
    let offers = || incoming.offers.iter();
    let registered = || offers().filter_map(|it| Some((it.life, it.consumption?)));
    let Some(life) = registered().map(|(life, _)| life).max() else {
        let life = offers().map(|it| it.life).max().unwrap_or(0);
        return Some(KnownPosition { consumption: None, life });
    };
    let of_last = registered().filter(|it| it.0 == life).map(|(_, consumption)| consumption);
    let further = |best: Consumption, it: Consumption| if it.is_after(&best) { it } else { best };
    Some(KnownPosition { consumption: of_last.reduce(further), life })
}
