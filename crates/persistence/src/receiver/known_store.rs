//! A store, as a receiver knows it.

use super::offers::Offers;
use crate::quorum::StoreGroups;
use crate::silence::Silence;
use lanecast_wire::store::Members;

/// Questions without an answer after which a store is not waited for that alone has told of
/// messages: too few others have them, so they were not stable.
const UNANSWERED_MAX: u64 = 100;

/// A store of a receiver, with what it has answered.
#[derive(Clone, Debug)]
pub(super) struct KnownStore {
    pub(super) name: String,
    pub(super) incarnation: Option<u64>,
    /// The last question that it has answered: it has named all of its streams.
    pub(super) answered: u64,
    /// The question whose answer has named streams last, and how many there were.
    named: (u64, u32),
    /// Streams among them that found no room at the receiver.
    refused: u32,
    pub(super) silence: Silence,
    pub(super) is_lost: bool,
}

impl KnownStore {
    /// A store that was not asked yet.
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            incarnation: None,
            answered: 0,
            named: (0, 0),
            refused: 0,
            silence: Silence::default(),
            is_lost: false,
        }
    }

    /// Whether the store is there, or may soon come back.
    pub(super) const fn is_awaited(&self) -> bool {
        self.silence.unanswered() <= UNANSWERED_MAX
    }

    /// The store names a stream in its answer to the question `token`.
    pub(super) const fn on_named(&mut self, token: u64) {
        if self.named.0 != token {
            (self.named, self.refused) = ((token, 0), 0);
        }
        self.named.1 = self.named.1.saturating_add(1);
    }

    /// The stream that was named last finds no room.
    pub(super) const fn on_refused(&mut self) {
        self.refused = self.refused.saturating_add(1);
    }

    /// Streams of the last answer that found no room.
    pub(super) const fn refused(&self) -> u32 {
        self.refused
    }

    /// Whether the answer to the question `token` has named so many streams: a frame was lost
    /// otherwise.
    pub(super) const fn has_named(&self, token: u64, count: u32) -> bool {
        count == 0 || (self.named.0 == token && self.named.1 == count)
    }

    /// Whether the store has answered with the data of a member.
    pub(super) fn is_member(&self, members: &Members) -> bool {
        let incarnation = members.incarnation(&self.name);
        incarnation.is_some() && incarnation == self.incarnation
    }
}

/// The index of the member's store among `stores`, if it has answered with the member's data.
pub(super) fn member(stores: &[KnownStore], name: &str, incarnation: u64) -> Option<usize> {
    let place = stores.iter().position(|store| store.name == name)?;
    (stores[place].incarnation == Some(incarnation)).then_some(place)
}

/// The last question that a store has answered with its state of the stream with these offers, or
/// without the stream.
pub(super) fn answered(stores: &[KnownStore], offers: &Offers, store: usize) -> u64 {
    offers.untold.answered(store, stores[store].answered)
}

/// Whether the members of the stream with these offers that have answered question `token` or a
/// later one know every stable message; if no members are known, whether no store of the receiver's
/// could.
pub(super) fn have_answered(
    stores: &[KnownStore],
    groups: &StoreGroups,
    offers: &Offers,
    token: u64,
) -> bool {
    let has_answered = |store: usize| answered(stores, offers, store) >= token;
    let Some(members) = offers.members() else { return groups.is_recovery_quorum(has_answered) };
    members.is_recovery_quorum(|name, incarnation| {
        member(stores, name, incarnation).is_some_and(has_answered)
    })
}

/// Whether so many members of a stream have answered question `token` or a later one that no other
/// has a stable message. Also with other data: then theirs is gone.
pub(super) fn knows_all(stores: &[KnownStore], offers: &Offers, token: u64) -> bool {
    let has_answered = |name: &str, _| {
        let mut places = 0..stores.len();
        places.any(|it| stores[it].name == name && answered(stores, offers, it) >= token)
    };
    offers.members().is_none_or(|members| members.is_recovery_quorum(has_answered))
}

/// Whether every store has answered question `token` or a later one with its state of a stream, or
/// is not waited for.
pub(super) fn is_none_awaited(stores: &[KnownStore], offers: &Offers, token: u64) -> bool {
    let counts = |(index, it): (usize, &KnownStore)| {
        let is_given_up = it.is_lost || offers.untold.is_given_up(index);
        is_given_up || answered(stores, offers, index) >= token
    };
    stores.iter().enumerate().all(counts)
}

/// The last question that enough stores have answered to know every session that they keep, however
/// late.
pub(super) fn last_answered(stores: &[KnownStore], groups: &StoreGroups) -> Option<u64> {
    let is_enough = |token: &u64| {
        *token > 0 && groups.is_recovery_quorum(|store| stores[store].answered >= *token)
    };
    stores.iter().map(|store| store.answered).filter(is_enough).max()
}
