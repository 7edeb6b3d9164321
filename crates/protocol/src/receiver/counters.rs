//! Counters of a receiver, and its log of gaps.

use crate::Nanos;
use lanecast_transport::LossReason;
use std::collections::VecDeque;

/// Most records in the log; the oldest are dropped.
const RECORDS_MAX: usize = 512;

/// Counts since the receiver was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Datagrams accepted.
    pub datagrams: u64,
    /// Messages delivered.
    pub messages: u64,
    /// NAKs sent.
    pub naks: u64,
    /// Gaps noticed: runs of missing datagrams.
    pub gaps: u64,
    /// Missing datagrams that were recovered.
    pub recovered: u64,
    /// Messages of subscribed topics that ended in recovered datagrams.
    pub recovered_messages: u64,
    /// Parity frames received.
    pub parity: u64,
    /// Parity frames of which nothing was missing.
    pub parity_unused: u64,
    /// Missing datagrams that were rebuilt from parity; they count as recovered, too.
    pub rebuilt: u64,
    /// Datagrams lost.
    pub lost_datagrams: u64,
    /// Messages reported as lost, as far as their number was known.
    pub lost: u64,
    /// Duplicate datagrams.
    pub duplicates: u64,
    /// Malformed frames, blocks and entries.
    pub malformed: u64,
    /// Frames implausibly far ahead.
    pub implausible: u64,
    /// Datagrams dropped because the reorder buffer or the list of gaps was full.
    pub overflowed: u64,
    /// Shortest time from noticing a missing datagram to its recovery.
    pub recovery_min: Nanos,
    /// Longest such time.
    pub recovery_max: Nanos,
    /// Sum of such times.
    pub recovery_sum: Nanos,
}

impl ReceiverCounters {
    /// Adds the counts of another receiver.
    pub fn add(&mut self, other: &Self) {
        let shortest = match (self.recovered, other.recovered) {
            // A minimum over no recoveries is zero, which would hide the other's.
            (0, _) => other.recovery_min,
            (_, 0) => self.recovery_min,
            _ => self.recovery_min.min(other.recovery_min),
        };
        *self = Self {
            datagrams: self.datagrams.saturating_add(other.datagrams),
            messages: self.messages.saturating_add(other.messages),
            naks: self.naks.saturating_add(other.naks),
            gaps: self.gaps.saturating_add(other.gaps),
            recovered: self.recovered.saturating_add(other.recovered),
            recovered_messages: self.recovered_messages.saturating_add(other.recovered_messages),
            parity: self.parity.saturating_add(other.parity),
            parity_unused: self.parity_unused.saturating_add(other.parity_unused),
            rebuilt: self.rebuilt.saturating_add(other.rebuilt),
            lost_datagrams: self.lost_datagrams.saturating_add(other.lost_datagrams),
            lost: self.lost.saturating_add(other.lost),
            duplicates: self.duplicates.saturating_add(other.duplicates),
            malformed: self.malformed.saturating_add(other.malformed),
            implausible: self.implausible.saturating_add(other.implausible),
            overflowed: self.overflowed.saturating_add(other.overflowed),
            recovery_min: shortest,
            recovery_max: self.recovery_max.max(other.recovery_max),
            recovery_sum: self.recovery_sum.saturating_add(other.recovery_sum),
        };
    }

    /// Mean time from noticing a missing datagram to its recovery; 0 without one.
    pub fn recovery_mean(&self) -> Nanos {
        self.recovery_sum.checked_div(self.recovered).unwrap_or(0)
    }

    /// Counts a datagram recovered after `after`.
    pub(super) fn count_recovery(&mut self, after: Nanos) {
        let shortest = if self.recovered == 0 { after } else { self.recovery_min };
        self.recovery_min = shortest.min(after);
        self.recovery_max = self.recovery_max.max(after);
        self.recovery_sum = self.recovery_sum.saturating_add(after);
        self.recovered += 1;
    }
}

/// Outcome of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapEnd {
    /// The gap was noticed.
    Open,
    /// The datagrams were recovered: they came late by themselves.
    Late,
    /// The datagrams were recovered: the sender sent them again.
    Repaired,
    /// The datagrams were recovered from parity.
    Rebuilt,
    /// The datagrams are lost.
    Lost(LossReason),
}

/// A gap that was noticed, recovered or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapRecord {
    /// Time at which the gap was noticed.
    pub noticed: Nanos,
    /// Time from there to the recovery or loss of its last datagram.
    pub after: Nanos,
    /// First missing sequence.
    pub first: u64,
    /// Number of datagrams.
    pub count: u64,
    /// Outcome.
    pub end: GapEnd,
}

/// Latest gap records that were not taken yet.
#[derive(Debug, Default)]
pub(super) struct GapLog(VecDeque<GapRecord>);

impl GapLog {
    /// Adds a record, merged with the last one if it continues it.
    pub(super) fn add(&mut self, record: GapRecord) {
        if let Some(last) = self.0.back_mut()
            && last.end == record.end
            // Only parts of one gap: their times then agree.
            && last.noticed == record.noticed
            && last.first.wrapping_add(last.count) == record.first
        {
            last.count = last.count.saturating_add(record.count);
            last.after = record.after;
            return;
        }
        if self.0.len() == RECORDS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(record);
    }

    /// Whether it is half full.
    pub(super) fn is_filling(&self) -> bool {
        self.0.len() >= RECORDS_MAX / 2
    }

    pub(super) fn take(&mut self) -> Option<GapRecord> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(first: u64) -> GapRecord {
        GapRecord { noticed: 5, after: first, first, count: 1, end: GapEnd::Late }
    }

    #[test]
    fn neighbours_are_one_record_and_the_log_is_bounded() {
        let mut log = GapLog::default();
        log.add(record(1));
        log.add(record(2));
        log.add(GapRecord { end: GapEnd::Lost(LossReason::Gone), ..record(3) });
        assert_eq!(log.take().map(|gap| (gap.first, gap.count, gap.after)), Some((1, 2, 2)));
        assert_eq!(log.take().map(|gap| gap.end), Some(GapEnd::Lost(LossReason::Gone)));
        assert!(!log.is_filling());
        (0..1_000).for_each(|n| log.add(record(n * 2)));
        assert!(log.is_filling());
        assert_eq!(std::iter::from_fn(|| log.take()).count(), RECORDS_MAX);
    }

    #[test]
    fn recovery_times_are_summed_up() {
        let mut counters = ReceiverCounters::default();
        [30, 10].into_iter().for_each(|after| counters.count_recovery(after));
        assert_eq!((counters.recovery_min, counters.recovery_max), (10, 30));
        assert_eq!((counters.recovery_sum, counters.recovered), (40, 2));
        assert_eq!(
            (counters.recovery_mean(), ReceiverCounters::default().recovery_mean()),
            (20, 0)
        );
        let mut sum = ReceiverCounters::default();
        [ReceiverCounters::default(), counters, counters].iter().for_each(|other| sum.add(other));
        assert_eq!((sum.recovery_min, sum.recovery_max), (10, 30));
        assert_eq!((sum.recovery_sum, sum.recovered), (80, 4));
    }
}
