//! The log that a receiver follows.

use crate::store::copying::{common_length, consumed_length};
use lanecast_wire::store::{Ballot, Consumption, Run, STORE_NUMBER_MAX, StoreState};

/// The runs of the log that is followed.
#[derive(Clone, Debug, Default)]
pub(super) struct FollowedLog {
    runs: Vec<Run>,
    /// Every later run goes on with the last one of these.
    pub(super) is_decided: bool,
}

impl FollowedLog {
    /// A log with these runs.
    pub(super) fn new(runs: &[Run], is_decided: bool) -> Self {
        Self { runs: runs.to_vec(), is_decided }
    }

    /// The log to follow after `from`, which is consumed: the latest one, or `from`'s up to its
    /// run. The latter if the latest log lacks messages that are consumed and is not decided: it
    /// may give way to one that has them.
    pub(super) fn after(from: &Consumption, latest: &[Run], is_decided: bool) -> Self {
        let last = latest.iter().position(|run| run.ballot == from.run.ballot);
        let (own, later) = latest.split_at(last.map_or(latest.len(), |last| last + 1));
        let lacks_some = later.first().is_some_and(|run| run.start < from.next);
        // A run with messages was registered, which those behind it take for granted.
        let are_empty = later.windows(2).all(|runs| runs[0].start == runs[1].start);
        if lacks_some && are_empty && !is_decided {
            // Messages of the last one were consumed: it was registered.
            Self::new(own, true)
        } else {
            Self::new(latest, is_decided)
        }
    }

    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The last run.
    pub(super) fn ballot(&self) -> Ballot {
        self.runs.last().map_or(Ballot::ZERO, |run| run.ballot)
    }

    /// Sequence of the last run's first message.
    #[inline]
    fn start(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.start)
    }

    /// Sequence of a message of the last run, by its place in that; `None` behind the last sequence
    /// that a stream can have.
    #[inline]
    pub(super) fn sequence(&self, place: u64) -> Option<u64> {
        self.start().checked_add(place).filter(|sequence| *sequence < STORE_NUMBER_MAX)
    }

    /// The run of a message.
    pub(super) fn run_of(&self, sequence: u64) -> Ballot {
        let run = self.runs.iter().rev().find(|run| run.start <= sequence);
        run.map_or(Ballot::ZERO, |run| run.ballot)
    }

    /// Sequence after the last message of a run.
    pub(super) fn end_of(&self, run: Ballot) -> u64 {
        let later = self.runs.iter().find(|it| it.ballot > run);
        later.map_or(u64::MAX, |run| run.start)
    }

    /// Sequence up to which a store's log is the same.
    pub(super) fn shared(&self, state: &StoreState) -> u64 {
        common_length(&state.runs, state.next, &self.runs, u64::MAX)
    }

    /// Number of the messages of a consumption that are part of this log.
    pub(super) fn consumed(&self, consumption: &Consumption) -> u64 {
        consumed_length(consumption, &self.runs, u64::MAX)
    }

    /// The position of a receiver that has consumed the messages before `next`: in the run of the
    /// last one, or in a later one that begins here, if that was registered. So it is behind one
    /// that was told before the messages from here on were discarded.
    pub(super) fn consumption(&self, next: u64) -> Consumption {
        let is_entered = |(index, run): &(usize, &Run)| {
            let later = self.runs.get(index + 1);
            let is_registered = later.map_or(self.is_decided, |later| later.start > run.start);
            run.start < next || (run.start == next && is_registered)
        };
        let run = self.runs.iter().enumerate().rev().find(is_entered);
        let none = Consumption { next, ..Consumption::NONE };
        run.map_or(none, |(_, run)| Consumption { run: *run, next })
    }
}
