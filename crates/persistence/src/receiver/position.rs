//! A receiver's position in a stream, as its stores know it.

use super::incoming::Incoming;
use super::known_store::{KnownStore, member};
use crate::quorum::StoreGroups;
use lanecast_wire::store::Consumption;

/// The furthest position that a store knows, `None` if none knows the receiver; if enough of the
/// stream's stores have answered.
pub(super) fn position(
    stores: &[KnownStore],
    groups: &StoreGroups,
    incoming: &Incoming,
) -> Option<Option<Consumption>> {
    let members = incoming.offers.members()?;
    let answered = |name: &str, incarnation| {
        let store = member(stores, name, incarnation)?;
        (stores[store].answered >= incoming.seen).then_some(store)
    };
    let is_member = |name: &str, incarnation| answered(name, incarnation).is_some();
    // Registrations are not copied: a store that joined later may lack those of receivers that
    // were away, until it has one.
    let has_kept = |name: &str, incarnation| {
        let offer = answered(name, incarnation).map(|store| incoming.offers.of(store));
        let is_registered = offer.flatten().is_some_and(|it| it.consumption.is_some());
        offer.is_some() && (is_registered || !members.may_have_joined_late(name))
    };
    // Data that is gone for good is not waited for: its store answers with other data, or is
    // no member any more.
    let is_silent = |(name, _): &(String, u64)| {
        let store = groups.index(name);
        store.is_none_or(|store| stores[store].answered < incoming.seen)
    };
    let is_decided = members.is_recovery_quorum(is_member)
        && (members.is_recovery_quorum(has_kept) || !members.stores.iter().any(is_silent));
    if !incoming.offers.has_run() || !is_decided {
        return None;
    }
    let known = incoming.offers.iter().filter_map(|offer| offer.consumption);
    let furthest = known.fold(None, |best: Option<Consumption>, it| match best {
        Some(best) if !it.is_after(&best) => Some(best),
        _ => Some(it),
    });
    Some(furthest)
}
