//! What a receiver counts, and its log of gaps.

use super::LossReason;
use crate::Nanos;
use std::collections::VecDeque;

/// How many gaps the log holds before the oldest are dropped.
const RECORDS_MAX: usize = 512;

/// What a receiver has seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Datagrams that were taken.
    pub datagrams: u64,
    /// Messages that were delivered.
    pub messages: u64,
    /// NAKs that were sent.
    pub naks: u64,
    /// Runs of missing datagrams that were noticed.
    pub gaps: u64,
    /// Missing datagrams that came after all.
    pub recovered: u64,
    /// Messages of wanted topics that ended in such datagrams.
    pub recovered_messages: u64,
    /// Datagrams that were given up.
    pub lost_datagrams: u64,
    /// Messages that were told as lost, as far as their number was known.
    pub lost: u64,
    /// Datagrams that came again.
    pub duplicates: u64,
    /// Frames, blocks and entries that made no sense.
    pub malformed: u64,
    /// Frames too far ahead to be believed.
    pub implausible: u64,
    /// Datagrams dropped because no more could be kept.
    pub overflowed: u64,
    /// The shortest time from noticing a missing datagram to its coming.
    pub recovery_min: Nanos,
    /// The longest such time.
    pub recovery_max: Nanos,
    /// The sum of such times.
    pub recovery_sum: Nanos,
}

impl ReceiverCounters {
    /// Adds what another receiver has counted.
    pub fn add(&mut self, other: &Self) {
        let shortest = match (self.recovered, other.recovered) {
            (0, _) => other.recovery_min,
            (_, 0) => self.recovery_min,
            _ => self.recovery_min.min(other.recovery_min),
        };
        *self = Self {
            datagrams: self.datagrams + other.datagrams,
            messages: self.messages + other.messages,
            naks: self.naks + other.naks,
            gaps: self.gaps + other.gaps,
            recovered: self.recovered + other.recovered,
            recovered_messages: self.recovered_messages + other.recovered_messages,
            lost_datagrams: self.lost_datagrams + other.lost_datagrams,
            lost: self.lost + other.lost,
            duplicates: self.duplicates + other.duplicates,
            malformed: self.malformed + other.malformed,
            implausible: self.implausible + other.implausible,
            overflowed: self.overflowed + other.overflowed,
            recovery_min: shortest,
            recovery_max: self.recovery_max.max(other.recovery_max),
            recovery_sum: self.recovery_sum.saturating_add(other.recovery_sum),
        };
    }

    /// The mean time from noticing a missing datagram to its coming; 0 if none was missing.
    pub fn recovery_mean(&self) -> Nanos {
        self.recovery_sum.checked_div(self.recovered).unwrap_or(0)
    }

    /// Counts a missing datagram that came `after` so long.
    pub(super) fn note_recovery(&mut self, after: Nanos) {
        let shortest = if self.recovered == 0 { after } else { self.recovery_min };
        self.recovery_min = shortest.min(after);
        self.recovery_max = self.recovery_max.max(after);
        self.recovery_sum = self.recovery_sum.saturating_add(after);
        self.recovered += 1;
    }
}

/// How a gap ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapEnd {
    /// It has not: it was noticed just now.
    Open,
    /// The datagrams came after all.
    Recovered,
    /// They were given up.
    Lost(LossReason),
}

/// A run of missing datagrams: noticed, or over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapRecord {
    /// When they were missed.
    pub noticed: Nanos,
    /// How long after that the last of them came or was given up.
    pub after: Nanos,
    /// The first one's sequence.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// How it ended.
    pub end: GapEnd,
}

/// What became of the latest gaps, as far as nobody has asked for it yet.
#[derive(Debug, Default)]
pub(super) struct GapLog(VecDeque<GapRecord>);

impl GapLog {
    /// Notes a gap's end; neighbours with the same fate make one record.
    pub(super) fn note(&mut self, record: GapRecord) {
        if let Some(last) = self.0.back_mut()
            && last.end == record.end
            && last.noticed == record.noticed
            && last.first.wrapping_add(last.count) == record.first
        {
            last.count += record.count;
            last.after = record.after;
            return;
        }
        if self.0.len() == RECORDS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(record);
    }

    pub(super) fn take(&mut self) -> Option<GapRecord> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(first: u64) -> GapRecord {
        GapRecord { noticed: 5, after: first, first, count: 1, end: GapEnd::Recovered }
    }

    #[test]
    fn neighbours_are_one_record_and_the_log_is_bounded() {
        let mut log = GapLog::default();
        log.note(record(1));
        log.note(record(2));
        log.note(GapRecord { end: GapEnd::Lost(LossReason::Gone), ..record(3) });
        assert_eq!(log.take().map(|gap| (gap.first, gap.count, gap.after)), Some((1, 2, 2)));
        assert_eq!(log.take().map(|gap| gap.end), Some(GapEnd::Lost(LossReason::Gone)));
        (0..1_000).for_each(|n| log.note(record(n * 2)));
        assert_eq!(std::iter::from_fn(|| log.take()).count(), RECORDS_MAX);
    }

    #[test]
    fn recovery_times_are_summed_up() {
        let mut counters = ReceiverCounters::default();
        [30, 10].into_iter().for_each(|after| counters.note_recovery(after));
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
