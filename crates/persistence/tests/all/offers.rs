//! Offers of stores to a receiver.

use crate::parts::{NOW, Outlet, SESSION};
use lanecast_persistence::{GroupRule, Receiver, ReceiverSettings, StoreGroups};
use lanecast_wire::store::{
    Ballot, Members, Run, STORE_NUMBER_MAX, StoreFrame, StoreOffer, StoreState,
};

pub(crate) const RUN: Run = Run { ballot: Ballot { epoch: 3, session: SESSION }, start: 0 };
pub(crate) const SOURCE: u64 = 7;

pub(crate) fn settings() -> ReceiverSettings {
    let stores = StoreGroups::new(vec![vec!["a", "b", "c"]], GroupRule::Any).expect("groups");
    ReceiverSettings::new(stores)
}

/// A receiver that has asked its stores.
pub(crate) fn asking(settings: ReceiverSettings) -> (Receiver, Outlet) {
    let (mut receiver, mut out) = (Receiver::new(settings, 1, NOW), Outlet::default());
    receiver.tick(NOW, &mut out);
    (receiver, out)
}

/// Members in the order in which they joined.
pub(crate) fn members(version: u64, stores: &[(&str, u64)]) -> Members {
    let stores = stores.iter().map(|(name, data)| ((*name).to_owned(), *data)).collect();
    Members::without_groups(version, stores)
}

/// An offer of a store that is a member of the first version, with ten messages of one run.
pub(crate) fn offer() -> StoreOffer {
    let state = StoreState {
        incarnation: 5,
        promised: RUN.ballot,
        log: RUN.ballot,
        next: 10,
        members: members(1, &[("a", 5), ("b", 5), ("c", 5)]),
        runs: vec![RUN],
        ..StoreState::default()
    };
    StoreOffer {
        token: 0,
        is_live: true,
        has_left: false,
        is_expired: false,
        life: 0,
        consumption: None,
        number: 0,
        since: 0,
        until: STORE_NUMBER_MAX,
        state,
    }
}

/// The last question that a receiver asked.
pub(crate) fn token(out: &Outlet) -> u64 {
    let asked = out.frames.iter().rev().find_map(|bytes| match StoreFrame::read(bytes) {
        Ok((_, StoreFrame::Attach { token, .. })) => Some(token),
        _ => None,
    });
    asked.expect("a question")
}

/// Answers the last question as a store with this offer.
pub(crate) fn answer(
    receiver: &mut Receiver,
    store: usize,
    offer: &StoreOffer,
    now: u64,
    out: &mut Outlet,
) {
    let token = token(out);
    let incarnation = offer.state.incarnation;
    let offer = StoreOffer { token, ..offer.clone() };
    receiver.on_frame(store, SOURCE, &StoreFrame::Offer(offer), now, out);
    let streams = StoreFrame::Streams { incarnation, token, count: 1 };
    receiver.on_frame(store, 0, &streams, now, out);
}

pub(crate) fn told(out: &Outlet, kind: &str) -> Vec<String> {
    out.receiver_events.iter().filter(|event| event.starts_with(kind)).cloned().collect()
}

/// An offer of messages before `next`, of runs that begin at these sequences, each on a session of
/// its own.
pub(crate) fn offer_of_runs(starts: &[u64], next: u64) -> StoreOffer {
    let run = |(number, start): (u64, &u64)| {
        let ballot = Ballot { epoch: 3 + number, session: SESSION + number };
        Run { ballot, start: *start }
    };
    let runs: Vec<Run> = (0..).zip(starts).map(run).collect();
    let (log, offer) = (runs.last().expect("a run").ballot, offer());
    StoreOffer { state: StoreState { promised: log, log, next, runs, ..offer.state }, ..offer }
}

/// Three stores answer the next question with these offers.
pub(crate) fn answer_next(
    receiver: &mut Receiver,
    offers: &[StoreOffer; 3],
    now: u64,
    out: &mut Outlet,
) {
    receiver.tick(now, out);
    (0..).zip(offers).for_each(|(store, offer)| answer(receiver, store, offer, now, out));
}
