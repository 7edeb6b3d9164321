//! A store, as its publisher knows it.

use crate::Nanos;
use crate::silence::Silence;
use lanecast_wire::store::{Ballot, Members, StoreState};

/// A store of a publisher, with its last answer.
#[derive(Clone, Debug)]
pub(super) struct KnownStore {
    pub(super) name: String,
    /// `None` until the store has answered; forgotten when its connection ends.
    pub(super) state: Option<StoreState>,
    /// When the store last answered.
    pub(super) heard: Nanos,
    pub(super) silence: Silence,
    /// When to ask it next.
    pub(super) ask_at: Nanos,
    /// `StoreLost` was told.
    pub(super) is_lost: bool,
}

impl KnownStore {
    pub(super) fn new(name: &str, now: Nanos) -> Self {
        let (name, silence) = (name.to_owned(), Silence::default());
        Self { name, state: None, heard: now, silence, ask_at: now, is_lost: false }
    }

    /// The answer of a store that holds the stream by `members`.
    pub(super) fn as_member(&self, members: &Members) -> Option<&StoreState> {
        let incarnation = members.incarnation(&self.name)?;
        self.state.as_ref().filter(|state| state.incarnation == incarnation)
    }

    /// Whether the store has answered with other data than the member of its name had.
    pub(super) fn is_wiped(&self, members: &Members) -> bool {
        let is_other = |state: &StoreState| {
            members.incarnation(&self.name).is_some_and(|it| it != state.incarnation)
        };
        self.state.as_ref().is_some_and(is_other)
    }

    /// Whether the store has begun this run.
    pub(super) fn has_begun(&self, ballot: Ballot) -> bool {
        self.state.as_ref().is_some_and(|state| state.log == ballot)
    }

    /// Sequence after the store's last durable message of this run.
    pub(super) fn durable(&self, ballot: Ballot) -> u64 {
        let state = self.state.as_ref().filter(|state| state.log == ballot);
        state.map_or(0, |state| state.next)
    }
}
