//! Checks of all processes of a run together: as a publisher begins, and at the end.

use super::actors::Actors;
use super::departures::check_gone;
use super::oracle::Oracle;
use super::outcome::StoreOutcome;
use super::scenario::StoreScenario;
use crate::ensure;
use crate::violation::Verdict;
use lanecast_wire::store::Ballot;

/// A run goes on at `next`: its stores have kept the messages before, and all of them are stable
/// now. Stores that have begun an earlier attempt of its session may have others.
pub(super) fn check_begun(
    actors: &Actors,
    run: Ballot,
    next: u64,
    oracle: &mut Oracle,
    outcome: &mut StoreOutcome,
) -> Verdict {
    for index in 0..actors.stores.len() {
        let Some(state) = actors.state(index).filter(|state| state.log == run) else {
            continue;
        };
        let kept = actors.stores[index].kept(state.first..next.min(state.next));
        ensure!(
            kept.len() as u64 == next.min(state.next) - state.first,
            "store {index} lacks messages of its log"
        );
        for (sequence, body) in kept {
            oracle.on_kept(sequence, &body)?;
            if sequence >= oracle.stable() {
                outcome.inherited += 1;
                oracle.on_stable(sequence, &body)?;
            }
        }
    }
    Ok(())
}

/// The faults are over: all is stable, and was handed out.
pub(super) fn check_end(
    actors: &Actors,
    scenario: &StoreScenario,
    oracle: &Oracle,
    outcome: &mut StoreOutcome,
) -> Verdict {
    for index in 0..actors.stores.len() {
        let Some(state) = actors.state(index) else { continue };
        let members = state.members.incarnation(&StoreScenario::store_name(index));
        ensure!(
            state.log.epoch == 0 || state.members.version > 0 || members.is_some(),
            "store {index} has begun a run without members"
        );
    }
    for (id, receiver) in (0..).zip(&actors.receivers) {
        check_gone(receiver, id, &actors.stores)?;
    }
    // A stream that lost the data of too many stores waits for good, as it must.
    if outcome.wipes > 0 {
        outcome.healed_wipes += u64::from(actors.is_drained());
        return Ok(());
    }
    ensure!(
        actors.is_drained(),
        "not all is stable at the end: {:?}, states {:?}",
        actors.living().iter().map(|it| &actors.publishers[*it].source).collect::<Vec<_>>(),
        (0..actors.stores.len()).map(|it| actors.state(it)).collect::<Vec<_>>()
    );
    actors.receivers.iter().try_for_each(|it| it.check_end(oracle))?;
    ensure!(
        actors.are_complete(oracle, scenario),
        "receivers that are not there hold the publisher back, or stores keep for them: {:?}",
        actors.living().iter().map(|it| &actors.publishers[*it].source).collect::<Vec<_>>()
    );
    Ok(())
}

/// Sessions have ended: the receivers whose last message is of one of them were told.
pub(super) fn check_left(actors: &Actors, ended: &[u64]) -> Verdict {
    for receiver in &actors.receivers {
        let is_due = receiver.last_session().is_some_and(|it| ended.contains(&it));
        ensure!(receiver.has_left() || !is_due, "the end of a session is not told: {receiver:?}");
    }
    Ok(())
}
