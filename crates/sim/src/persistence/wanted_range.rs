//! The messages that a receiver has to be handed out, by where it was set up to begin and to end.

use super::oracle::Oracle;
use crate::ensure;
use crate::violation::Verdict;
use lanecast_persistence::{ReceiverEnd, ReceiverStart};
use lanecast_protocol::Nanos;

/// Beginning and end of a receiver, and the checks of both.
#[derive(Debug, Default)]
pub(super) struct WantedRange {
    start: ReceiverStart,
    end: ReceiverEnd,
    /// When the life began, and the messages that were stable then.
    began: Nanos,
    stable: u64,
    /// Sequence at which the receiver was told to have come to its end.
    ended: Option<u64>,
}

impl WantedRange {
    /// A life begins.
    pub(super) const fn on_start(
        &mut self,
        (start, end): (ReceiverStart, ReceiverEnd),
        oracle: &Oracle,
        began: Nanos,
    ) {
        *self = Self { start, end, began, stable: oracle.stable(), ended: None };
    }

    /// The stream begins at `next` for a receiver that stores do not know. Messages before
    /// `trimmed` may be gone.
    pub(super) fn on_begun(&self, next: u64, trimmed: u64, oracle: &Oracle) -> Verdict {
        match self.start {
            ReceiverStart::Oldest => {
                ensure!(next <= trimmed, "a receiver begins at {next}, behind {trimmed}");
            }
            ReceiverStart::Sequence(wanted) => {
                ensure!(next <= wanted.max(trimmed), "{wanted} is wanted, {next} comes");
                ensure!(
                    next >= wanted.min(self.stable),
                    "{wanted} is wanted, {} are stable, and {next} comes",
                    self.stable
                );
            }
            ReceiverStart::End => {
                ensure!(next <= oracle.written_end(), "{next} was not written");
                ensure!(
                    next >= self.stable,
                    "{} are stable, and {next} comes to a receiver that wants later ones",
                    self.stable
                );
            }
            ReceiverStart::Time(wanted) => {
                let younger = (trimmed..next).find(|it| !oracle.was_written_before(*it, wanted));
                ensure!(
                    younger.is_none(),
                    "message {younger:?} was written at {wanted} or later, and {next} comes first"
                );
                ensure!(
                    next < trimmed.max(1)
                        // The end by the first answers, if all messages were older by then.
                        || next >= self.stable
                        || oracle.was_written_since(next, wanted),
                    "message {next} comes, and no store has written it at {wanted} or later"
                );
            }
        }
        Ok(())
    }

    /// A message is handed out.
    pub(super) fn on_message(&self, sequence: u64) -> Verdict {
        if let ReceiverEnd::Sequence(end) = self.end {
            ensure!(sequence < end, "message {sequence} comes behind the end {end}");
        }
        ensure!(self.ended.is_none(), "message {sequence} comes, and {:?} was the end", self.ended);
        Ok(())
    }

    /// Whether the receiver was told to have come to its end in this stream, whether all of its
    /// stores have answered or not.
    pub(super) const fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Whether the receiver leaves out messages at the end of its stream.
    pub(super) const fn has_end(&self) -> bool {
        !matches!(self.end, ReceiverEnd::Never)
    }

    /// Messages from `first` on are discarded: those that take their places are wanted if they are
    /// in front of the end.
    pub(super) fn on_discarded(&mut self, first: u64) {
        self.ended.take_if(|ended| first < *ended);
    }

    /// The receiver is told that it has come to its end.
    pub(super) fn on_ended(&mut self, next: u64, oracle: &Oracle, forget: bool) -> Verdict {
        ensure!(self.ended.is_none(), "the end is told twice: {:?} and {next}", self.ended);
        let is_due = match self.end {
            ReceiverEnd::Never => false,
            ReceiverEnd::Sequence(end) => next >= end,
            // By stores that answered this life behind that time. Older messages may become stable
            // later: a store that did not answer brings them to the next run.
            ReceiverEnd::Time(end) => forget || next >= oracle.older_than(end, end.max(self.began)),
        };
        ensure!(is_due, "the end of {:?} is told at {next}", self.end);
        self.ended = Some(next);
        Ok(())
    }

    /// Whether a receiver whose next message is `next` has everything that is stable, up to its
    /// end. It says whether it has come to that, which was checked when it was told.
    pub(super) const fn is_complete(&self, next: u64, has_ended: bool, oracle: &Oracle) -> bool {
        match self.end {
            ReceiverEnd::Never => next == oracle.stable(),
            ReceiverEnd::Sequence(end) if end > oracle.stable() => next == oracle.stable(),
            ReceiverEnd::Sequence(_) | ReceiverEnd::Time(_) => has_ended,
        }
    }
}
