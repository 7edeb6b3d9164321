//! Receivers of a run that give up their registrations, and the check that their stores have ended
//! them.

use super::departure::Departure;
use super::outcome::StoreOutcome;
use super::processes::StoreProcess;
use super::receivers::ReceiverProcess;
use super::scenario::StoreScenario;
use super::store_list::StoreList;
use crate::ensure;
use crate::violation::Verdict;
use lanecast_persistence::{Detachment, Store};

/// Ends a receiver that has left, when that is confirmed by enough stores; returns whether a later
/// life is to begin.
///
/// # Errors
/// If a store has confirmed it, and its disk has the registration.
pub(super) fn depart(
    process: &mut ReceiverProcess,
    id: u64,
    stores: &[StoreProcess],
    outcome: &mut StoreOutcome,
) -> Verdict<bool> {
    let Departure::Leaving { returns } = process.departure else { return Ok(false) };
    let Some(receiver) = process.receiver.as_ref().filter(|it| it.is_detached()) else {
        return Ok(false);
    };
    let unconfirmed = match receiver.detachment() {
        Some(Detachment::Everywhere) => Vec::new(),
        Some(Detachment::Enough { unconfirmed }) => unconfirmed,
        other => unreachable!("{other:?} is no end"),
    };
    let has_confirmed = |store: &usize| !unconfirmed.contains(&StoreScenario::store_name(*store));
    let listed = process.list.iter().flat_map(StoreList::stores);
    let confirmed: Vec<usize> = listed.filter(has_confirmed).collect();
    for store in &confirmed {
        ensure!(!stores[*store].keeps(id), "store {store} has ended receiver {id}, and keeps it");
    }
    outcome.departures += 1;
    outcome.partial_departures += u64::from(!unconfirmed.is_empty());
    process.crash();
    if returns {
        process.begin_anew(unconfirmed.is_empty());
    } else {
        process.departure = Departure::Gone(confirmed);
    }
    Ok(returns)
}

/// Whether a store keeps messages for a receiver that has left: it was away then, and has not
/// learned it from the others.
pub(super) fn is_waited_for(process: &ReceiverProcess, id: u64, stores: &[StoreProcess]) -> bool {
    let waits = |store: &Store| {
        let next = store.summaries().next().map_or(0, |stream| stream.next);
        store.receivers(0, id).next().is_some_and(|it| it.receiver == id && it.next < next)
    };
    let is_gone = matches!(process.departure, Departure::Gone(_));
    is_gone && stores.iter().filter_map(|it| it.store.as_ref()).any(waits)
}

/// Checks that no store which has confirmed it waits for a receiver that has left.
pub(super) fn check_gone(process: &ReceiverProcess, id: u64, stores: &[StoreProcess]) -> Verdict {
    let Departure::Gone(confirmed) = &process.departure else { return Ok(()) };
    for store in confirmed {
        let is_there = stores[*store]
            .store
            .as_ref()
            .is_some_and(|it| it.receivers(0, id).next().is_some_and(|known| known.receiver == id));
        ensure!(!is_there, "store {store} waits for receiver {id}, which it had let go");
    }
    Ok(())
}
