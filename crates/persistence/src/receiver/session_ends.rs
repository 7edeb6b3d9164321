//! Ends of the sessions that streams follow: found in the answers of stores, and told.

use super::incoming::Incoming;
use super::known_store::{KnownStore, answered, have_answered, is_none_awaited, knows_all, member};
use super::leaving::Streams;
use super::offers::Offers;
use super::sessions::Sessions;
use crate::outlet::ReceiverOutlet;
use crate::quorum::StoreGroups;
use lanecast_wire::store::Ballot;

/// Ends sessions that this receiver takes no part in, if enough stores tell that in their answers
/// to the question `token` and those before; returns whether there are any.
pub(super) fn find_ends(
    streams: &mut Streams,
    sessions: &mut Sessions,
    (stores, groups): (&[KnownStore], &StoreGroups),
    token: u64,
) -> bool {
    let mut are_news = false;
    let named = |(session, told)| Some((session, told, sessions.source(session)?));
    for (session, told, source) in sessions.cut_off().filter_map(named).collect::<Vec<_>>() {
        let Some((incoming, _)) = streams.get_mut(&source) else { continue };
        let answered = |offers: &Offers, name: &str, incarnation| {
            let store = member(stores, name, incarnation);
            store.map_or(0, |store| answered(stores, offers, store))
        };
        let has_left = incoming.has_publisher_left(groups, token, answered);
        if has_left && told.is_none_or(|next| incoming.next > next) {
            sessions.on_end(session, incoming.next);
            incoming.session_end.on_left(token + 1);
            are_news = true;
        }
    }
    are_news
}

/// Tells the ends of sessions that enough answers confirm. `is_certain`: no store is waited for,
/// whatever the stream.
pub(super) fn tell_ends(
    streams: &mut Streams,
    (stores, groups): (&[KnownStore], &StoreGroups),
    (is_certain, token): (bool, u64),
    out: &mut dyn ReceiverOutlet,
) {
    let by_members = |offers: &Offers, token| have_answered(stores, groups, offers, token);
    let have_all_answered = |offers: &Offers, token: u64| {
        is_certain && is_none_awaited(stores, offers, token) && knows_all(stores, offers, token)
    };
    let is_awaited = |store: usize| stores[store].is_awaited();
    for (incoming, _) in streams.values_mut() {
        incoming.give_up_gap(token, is_awaited, have_all_answered, out);
        incoming.tell_left(token + 1, is_awaited, by_members, out);
    }
}

/// Whether `run`, which a stream follows, is its last one: no answer to the question `token` of
/// enough members names a later one.
pub(super) fn is_last(
    incoming: &Incoming,
    run: Ballot,
    (stores, groups): (&[KnownStore], &StoreGroups),
    token: u64,
) -> bool {
    let offers = &incoming.offers;
    let is_followed = incoming.has_begun && run == incoming.ballot();
    let is_latest = offers.latest().is_some_and(|best| best.state.log == run);
    let asked = token.max(incoming.seen);
    let has_members = offers.members().is_some();
    is_followed && is_latest && has_members && have_answered(stores, groups, offers, asked)
}
