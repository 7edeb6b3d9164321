//! A store, as its publisher knows it.

use crate::Nanos;
use crate::silence::Silence;
use lanecast_wire::store::{Ballot, Members, StoreRefusal, StoreState};

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
    /// Refusal of the stream, as it was told.
    refused: Option<StoreRefusal>,
}

impl KnownStore {
    pub(super) fn new(name: &str, now: Nanos) -> Self {
        let (name, silence) = (name.to_owned(), Silence::default());
        let (is_lost, refused) = (false, None);
        Self { name, state: None, heard: now, silence, ask_at: now, is_lost, refused }
    }

    /// The store has answered with its state; returns the one before.
    pub(super) fn on_state(&mut self, state: &StoreState) -> Option<StoreState> {
        // A store that refuses something answers as before, or does not know the stream.
        let recorded = |it: &StoreState| (it.promised, it.log, it.members.version);
        let is_news = self.state.as_ref().is_none_or(|before| recorded(before) != recorded(state));
        if state.promised > Ballot::ZERO && is_news {
            self.refused = None;
        }
        self.state.replace(state.clone())
    }

    /// The store does not keep the stream; returns whether that is news.
    pub(super) fn on_refused(&mut self, refusal: StoreRefusal) -> bool {
        self.refused.replace(refusal) != Some(refusal)
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
