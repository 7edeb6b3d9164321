//! A store, as a receiver knows it.

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
    /// The last question that it has answered.
    pub(super) answered: u64,
    /// The question that its last offers answer, and how many there were.
    pub(super) offered: (u64, u32),
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
            offered: (0, 0),
            silence: Silence::default(),
            is_lost: false,
        }
    }

    /// Whether the store is there, or may soon come back.
    pub(super) const fn is_awaited(&self) -> bool {
        self.silence.unanswered() <= UNANSWERED_MAX
    }

    /// Whether the store has answered question `token` or a later one, with the data of a member.
    pub(super) fn answers_as(&self, members: &Members, token: u64) -> bool {
        let incarnation = members.incarnation(&self.name);
        self.answered >= token && incarnation.is_some() && incarnation == self.incarnation
    }
}

/// The index of the member's store among `stores`, if it has answered with the member's data.
pub(super) fn member(stores: &[KnownStore], name: &str, incarnation: u64) -> Option<usize> {
    let place = stores.iter().position(|store| store.name == name)?;
    (stores[place].incarnation == Some(incarnation)).then_some(place)
}

/// Whether the members that have answered question `token` or a later one know every stable
/// message.
pub(super) fn have_answered(stores: &[KnownStore], members: &Members, token: u64) -> bool {
    members.is_recovery_quorum(|name, incarnation| {
        member(stores, name, incarnation).is_some_and(|store| stores[store].answered >= token)
    })
}

/// Whether so many members of a stream have answered question `token` or a later one that no other
/// has a stable message. Also with other data: then theirs is gone.
pub(super) fn knows_all(stores: &[KnownStore], members: Option<&Members>, token: u64) -> bool {
    let has_answered =
        |name: &str, _| stores.iter().any(|store| store.name == name && store.answered >= token);
    members.is_none_or(|members| members.is_recovery_quorum(has_answered))
}

/// The last question that enough stores have answered to know every session that they keep, however
/// late.
pub(super) fn last_answered(stores: &[KnownStore], groups: &StoreGroups) -> Option<u64> {
    let is_enough = |token: &u64| {
        *token > 0 && groups.is_recovery_quorum(|store| stores[store].answered >= *token)
    };
    stores.iter().map(|store| store.answered).filter(is_enough).max()
}
