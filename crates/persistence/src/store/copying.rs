//! Copying messages from another store.

use crate::Nanos;
use core::ops::Range;
use lanecast_wire::store::{Ballot, Consumption, Members, Run, StoreFrame, TimedRecords};

/// Requests to another store without an answer until it is given up.
const UNANSWERED_MAX: u32 = 5;
/// The same before a run begins. More, since all copies are void then: a donor that is started
/// again comes back in that time.
const TAKE_OVER_UNANSWERED_MAX: u32 = 100;
/// Intervals between requests for which no run is taken over after its donor was given up:
/// retention, which passes over streams that are being copied, goes on meanwhile.
pub(super) const TAKE_OVER_PAUSE: u64 = 10;

/// Copying of what the log lacks.
#[derive(Clone, Debug)]
pub(super) struct Copying {
    /// The store that has it.
    pub(super) donor: String,
    /// The log in which it is: the donor's, before or after it began the run.
    pub(super) logs: [Ballot; 2],
    /// Sequence of the next message to copy.
    pub(super) next: u64,
    /// Sequence after the last one.
    pub(super) until: u64,
    /// When to ask again.
    pub(super) ask_at: Nanos,
    /// Requests since the last answer.
    pub(super) asked: u32,
    /// The run that begins when all is copied; `None` while the run goes on.
    pub(super) run: Option<NewRun>,
}

impl Copying {
    /// Copying of these `messages` of a run that goes on.
    pub(super) fn of_run(donor: &str, run: Ballot, messages: Range<u64>, now: Nanos) -> Self {
        Self {
            donor: donor.to_owned(),
            logs: [run; 2],
            next: messages.start,
            until: messages.end,
            ask_at: now,
            asked: 0,
            run: None,
        }
    }

    /// The donor has answered with these messages, from `first` on; it has those before `next`.
    pub(super) const fn on_answer(&mut self, first: u64, next: u64, records: TimedRecords<'_>) {
        // An answer with messages: the next request goes out at once. An empty one is repeated in
        // its time, or two stores would ask and answer without a pause.
        if first > self.next || !records.is_empty() {
            self.ask_at = 0;
        }
        // A donor that has the messages may have to look for them for several requests.
        if self.ask_at == 0 || next > self.next {
            self.asked = 0;
        }
    }

    /// Whether the donor is to be given up.
    pub(super) const fn is_unanswered(&self) -> bool {
        let is_take_over = self.run.is_some();
        self.asked >= if is_take_over { TAKE_OVER_UNANSWERED_MAX } else { UNANSWERED_MAX }
    }
}

/// A run that a store was asked to begin.
#[derive(Clone, Debug)]
pub(super) struct NewRun {
    pub(super) ballot: Ballot,
    pub(super) number: u64,
    pub(super) is_receiver_paced: bool,
    pub(super) members: Members,
    /// The runs in its log, itself last.
    pub(super) runs: Vec<Run>,
}

impl NewRun {
    /// The run that a publisher's frame asks for, if it asks for one.
    pub(super) fn of(frame: &StoreFrame<'_>) -> Option<Self> {
        let StoreFrame::Begin { ballot, number, is_receiver_paced, members, runs, .. } = frame
        else {
            return None;
        };
        Some(Self {
            ballot: *ballot,
            number: *number,
            is_receiver_paced: *is_receiver_paced,
            members: members.clone(),
            runs: runs.clone(),
        })
    }
}

/// The run of a request that only a registered publisher sends.
pub(super) const fn registered_run(frame: &StoreFrame<'_>) -> Option<Ballot> {
    match frame {
        StoreFrame::Query { ballot, .. }
        | StoreFrame::Resend { ballot, .. }
        | StoreFrame::Elsewhere { ballot, .. }
        | StoreFrame::Reconfigure { ballot, .. } => Some(*ballot),
        _ => None,
    }
}

/// Number of messages of a receiver's consumption that are part of the log up to `last` in `runs`.
pub(crate) fn consumed_length(consumption: &Consumption, runs: &[Run], last: u64) -> u64 {
    let Consumption { run, next } = *consumption;
    let is_known = runs.iter().any(|it| it.ballot == run.ballot);
    match runs.first() {
        _ if is_known => common_length(&[run], next, runs, last),
        // A run that the log has forgotten: it ended before the first one that it remembers.
        Some(first) if run.ballot < first.ballot => next.min(first.start),
        // The run is no part of the log; everything in front of it was stable.
        _ => next.min(run.start),
    }
}

/// Length of the common beginning of two logs: of a store, up to `next` in `own`, and the one up to
/// `start` in `chosen`. Logs that have a run in common are the same up to where the run ends in
/// either: a run begins with the same log everywhere, and its messages come from one session in
/// order.
pub(crate) fn common_length(own: &[Run], next: u64, chosen: &[Run], start: u64) -> u64 {
    let end = |runs: &[Run], index: usize, last: u64| {
        runs.get(index + 1).map_or(last, |following| following.start).min(last)
    };
    for (index, run) in own.iter().enumerate().rev() {
        let same = chosen.iter().position(|it| it.ballot == run.ballot);
        if let Some(other) = same {
            return end(own, index, next).min(end(chosen, other, start));
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(runs: &[(u64, u64)]) -> Vec<Run> {
        let run = |&(epoch, start)| Run { ballot: Ballot { epoch, session: epoch }, start };
        runs.iter().map(run).collect()
    }

    #[test]
    fn consumption_counts_as_far_as_its_run_is_part_of_the_log() {
        let chosen = runs(&[(3, 10), (5, 20)]);
        let length = |epoch, start, next| {
            let run = Run { ballot: Ballot { epoch, session: epoch }, start };
            consumed_length(&Consumption { run, next }, &chosen, 25)
        };
        assert_eq!(length(3, 10, 15), 15);
        assert_eq!(length(3, 10, 22), 20, "its last messages were never stable");
        assert_eq!(length(5, 20, 24), 24);
        assert_eq!(length(4, 18, 22), 18, "it began nowhere else");
        assert_eq!(length(1, 0, 8), 8, "forgotten");
        assert_eq!(consumed_length(&Consumption::NONE, &chosen, 25), 0);
    }

    #[test]
    fn logs_are_common_up_to_the_end_of_their_last_common_run() {
        let chosen = runs(&[(1, 0), (3, 10), (5, 20)]);
        let common = |own: &[(u64, u64)], next| common_length(&runs(own), next, &chosen, 25);
        assert_eq!(common(&[], 0), 0, "nothing yet");
        assert_eq!(common(&[(1, 0)], 7), 7, "a beginning");
        assert_eq!(common(&[(1, 0)], 14), 10, "run 1 went on here, and run 3 replaced it");
        assert_eq!(common(&[(1, 0), (2, 8)], 30), 8, "run 2 began nowhere else");
        assert_eq!(common(&[(1, 0), (3, 10)], 22), 20);
        assert_eq!(common(&[(1, 0), (3, 10), (5, 20)], 22), 22);
        assert_eq!(common(&[(1, 0), (3, 10), (5, 20)], 30), 25, "never stable");
        assert_eq!(common(&[(2, 0)], 9), 0);
    }
}
