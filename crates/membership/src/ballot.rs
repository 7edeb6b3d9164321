//! Rounds of a change of the view, in their order.

use crate::view::{MemberId, ViewId};
use lanecast_wire::group::views::{BallotEntry, ViewEntry};

/// Identity of a round. A member takes part in a round only if it has promised no later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ballot {
    pub(crate) round: u64,
    pub(crate) leader: MemberId,
}

impl Ballot {
    /// Before every round.
    pub(crate) const NONE: Self = Self { round: 0, leader: MemberId(0) };
}

impl From<BallotEntry> for Ballot {
    fn from(entry: BallotEntry) -> Self {
        Self { round: entry.round.get(), leader: MemberId(entry.leader.get()) }
    }
}

impl From<Ballot> for BallotEntry {
    fn from(ballot: Ballot) -> Self {
        Self { round: ballot.round.into(), leader: ballot.leader.0.into() }
    }
}

impl From<ViewEntry> for ViewId {
    fn from(entry: ViewEntry) -> Self {
        Self { epoch: entry.epoch.get(), coordinator: MemberId(entry.coordinator.get()) }
    }
}

impl From<ViewId> for ViewEntry {
    fn from(view: ViewId) -> Self {
        Self { epoch: view.epoch.into(), coordinator: view.coordinator.0.into() }
    }
}
