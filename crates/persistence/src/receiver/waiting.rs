//! Stores that a receiver waits for, because too few others have answered.

use super::incoming::Incoming;
use super::known_store::{KnownStore, have_answered, knows_all};
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
        let streams = streams.filter(|it| is_waiting(stores, it, token));
        let is_waiting = !has_all || streams.clone().next().is_some();
        // A store with other data than the member of its name answers, and does not count.
        let is_missing = |store: &&KnownStore| {
            let counts = |it: &Incoming| {
                let members = it.offers.members();
                let members = members.filter(|it| it.incarnation(&store.name).is_some());
                let asked = it.is_ending_late(token).unwrap_or(it.seen);
                members.is_none_or(|members| store.answers_as(members, asked))
            };
            store.answered == 0 || store.is_lost || !streams.clone().all(counts)
        };
        let silent = stores.iter().filter(is_missing).map(|store| &store.name);
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
fn is_waiting(stores: &[KnownStore], incoming: &Incoming, token: u64) -> bool {
    let members = incoming.offers.members();
    let is_late = |asked| members.is_some_and(|members| !have_answered(stores, members, asked));
    !incoming.has_begun
        || (incoming.has_ending() && !knows_all(stores, members, 1))
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
    knows_all(stores, incoming.offers.members(), 1)
        && !incoming.may_be_brought(|store| stores[store].is_awaited())
}

/// Whether no run of a stream has begun, as far as enough stores know.
pub(super) fn is_empty(stores: &[KnownStore], groups: &StoreGroups, incoming: &Incoming) -> bool {
    let has_answered = |store: usize| stores[store].answered >= incoming.seen;
    !incoming.offers.has_run() && groups.is_recovery_quorum(has_answered)
}
