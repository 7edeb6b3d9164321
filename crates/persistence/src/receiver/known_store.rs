//! A store, as a receiver knows it.

use crate::silence::Silence;
use lanecast_wire::store::Members;

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
