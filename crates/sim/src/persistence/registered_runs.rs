//! The runs that were told to be registered, in the order of their ballots.

use crate::ensure;
use crate::violation::Verdict;
use lanecast_wire::store::Ballot;
use std::collections::BTreeMap;

/// Sequence after the last message that each run was told to be stable, in front of it or of it.
#[derive(Debug, Default)]
pub(super) struct RegisteredRuns(BTreeMap<Ballot, u64>);

impl RegisteredRuns {
    /// A run goes on at `next`, after what its stores have kept. It may learn that late: a later
    /// run has gone on from there then, and has more.
    ///
    /// # Errors
    /// If a message is missing that was stable in an earlier run.
    pub(super) fn on_registered(&mut self, run: Ballot, next: u64) -> Verdict {
        let before = self.0.range(..run).map(|(_, next)| *next).max().unwrap_or(0);
        ensure!(next >= before, "a run begins at {next}, and {before} messages are stable");
        self.on_stable(run, next);
        Ok(())
    }

    /// A run is told that the messages before `next` are stable.
    pub(super) fn on_stable(&mut self, run: Ballot, next: u64) {
        let stable = self.0.entry(run).or_default();
        *stable = next.max(*stable);
    }
}
