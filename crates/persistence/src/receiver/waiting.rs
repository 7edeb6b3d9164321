//! Stores that a receiver waits for, because too few others have answered.

use super::incoming::Incoming;
use super::known_store::{KnownStore, answered, have_answered, is_none_awaited, knows_all};
use crate::outlet::ReceiverOutlet;
use crate::quorum::StoreGroups;
use crate::receiver_event::ReceiverEvent;
use lanecast_wire::store::Members;
use std::collections::BTreeSet;

/// The stores that were told last; `None` if nothing waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    told: Option<Vec<String>>,
}

impl Waiting {
    /// Tells the stores that `streams` wait for, if they are others than before. `has_all`: enough
    /// stores have answered once; `token` is the last question.
    pub(super) fn tell<'a>(
        &mut self,
        stores: &[KnownStore],
        groups: &StoreGroups,
        streams: impl Iterator<Item = &'a Incoming> + Clone,
        (has_all, token): (bool, u64),
        out: &mut dyn ReceiverOutlet,
    ) {
        let streams = streams.filter(|it| is_waiting((stores, groups), it, token));
        let is_waiting = !has_all || streams.clone().next().is_some();
        // A store with other data than the member of its name answers, and does not count.
        let is_missing = |(index, store): &(usize, &KnownStore)| {
            let counts = |it: &Incoming| {
                let Some(members) = it.offers.members() else {
                    return !it.offers.untold.is_untold(*index);
                };
                let asked = it.is_ending_late(token).unwrap_or(it.seen);
                members.incarnation(&store.name).is_none()
                    || (answered(stores, &it.offers, *index) >= asked && store.is_member(members))
            };
            store.answered == 0 || store.is_lost || !streams.clone().all(counts)
        };
        let silent = stores.iter().enumerate().filter(is_missing).map(|(_, store)| &store.name);
        let members = streams.clone().filter_map(|it| it.offers.members());
        let unlisted = unlisted(groups, members);
        let silent: Vec<String> = silent.chain(unlisted).cloned().collect();
        let waiting = (is_waiting && !silent.is_empty()).then_some(silent);
        if waiting != self.told {
            self.told.clone_from(&waiting);
            if let Some(silent) = waiting {
                out.event(ReceiverEvent::Waiting { silent });
            }
        }
    }
}

/// Whether a stream cannot begin, or the end of its session not be told, before more stores answer.
fn is_waiting(
    (stores, groups): (&[KnownStore], &StoreGroups),
    incoming: &Incoming,
    token: u64,
) -> bool {
    let offers = &incoming.offers;
    let is_late =
        |asked| offers.members().is_some() && !have_answered(stores, groups, offers, asked);
    !incoming.has_begun
        || (incoming.has_ending() && !knows_all(stores, offers, 1))
        || incoming.is_ending_late(token).is_some_and(is_late)
}

/// Members that the receiver does not name, in ascending order.
fn unlisted<'a>(
    groups: &StoreGroups,
    members: impl Iterator<Item = &'a Members>,
) -> BTreeSet<&'a String> {
    let names = members.flat_map(|it| &it.stores).map(|(name, _)| name);
    names.filter(|name| groups.index(name).is_none()).collect()
}

/// Whether enough members of a stream have answered that messages which none of them names are
/// lost, and no store that was there before may bring them.
pub(super) fn is_known(stores: &[KnownStore], incoming: &Incoming) -> bool {
    knows_all(stores, &incoming.offers, 1)
        && is_none_awaited(stores, &incoming.offers, 1)
        && !incoming.may_be_brought(|store| stores[store].is_awaited())
}

/// Whether no run of a stream has begun, as far as enough stores know.
pub(super) fn is_empty(stores: &[KnownStore], groups: &StoreGroups, incoming: &Incoming) -> bool {
    let offers = &incoming.offers;
    let has_answered = |store: usize| {
        answered(stores, offers, store) >= incoming.seen || offers.untold.is_empty(store)
    };
    !incoming.offers.has_run() && groups.is_recovery_quorum(has_answered)
}
