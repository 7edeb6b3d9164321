//! Tracks which datagrams were received, and the gaps between them.

use crate::Nanos;
use crate::sequence::{ahead, before, earlier, later};

/// Most gaps tracked.
const GAPS_MAX: usize = 4_096;
/// Largest plausible jump, in datagrams.
const JUMP_MAX: u64 = 1 << 20;

/// A gap: a run of missing datagrams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    pub(super) first: u64,
    pub(super) count: u64,
    pub(super) noticed: Nanos,
    /// Time of the next NAK.
    pub(super) due: Nanos,
    /// NAKs sent for the gap's first datagrams.
    pub(super) tries: u32,
    /// Confirms of other receivers' NAKs that have postponed this one's.
    pub(super) confirms: u32,
    /// First sequence that was not requested yet.
    pub(super) asked: u64,
    /// Data from before this receiver joined; requested slice by slice.
    pub(super) history: bool,
}

impl Gap {
    pub(super) const fn new(first: u64, count: u64, noticed: Nanos, due: Nanos) -> Self {
        Self { first, count, noticed, due, tries: 0, confirms: 0, asked: first, history: false }
    }

    /// First sequence after the gap.
    pub(super) const fn end(&self) -> u64 {
        self.first.wrapping_add(self.count)
    }
}

/// Times from noticing a gap to giving it up.
#[derive(Clone, Copy, Debug)]
pub(super) struct GapTimes {
    /// Time for data sent since this receiver joined.
    pub(super) live: Nanos,
    /// Time for data from before.
    pub(super) history: Nanos,
}

impl GapTimes {
    /// Time at which a gap expires.
    const fn expiry(self, gap: &Gap) -> Nanos {
        gap.noticed.saturating_add(if gap.history { self.history } else { self.live })
    }
}

/// Classification of a received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// At the head or ahead of it.
    New,
    /// Fills part of a gap.
    Missing,
    /// Received before, or lost.
    Duplicate,
    /// Implausibly far ahead.
    Implausible,
    /// Would open a gap beyond the most that are tracked.
    Overflow,
}

/// Every datagram before `head` was received or lost, except those in the gaps.
#[derive(Debug)]
pub(super) struct GapTracker {
    head: u64,
    gaps: Vec<Gap>,
    max_jump: u64,
    /// The next jump may be as long as the sender's window.
    jump_allowed: bool,
}

impl GapTracker {
    pub(super) const fn new() -> Self {
        Self { head: 0, gaps: Vec::new(), max_jump: 0, jump_allowed: false }
    }

    /// Begins at `start`. Jumps up to four times the larger window are plausible.
    pub(super) fn begin(&mut self, start: u64, window: u32) {
        self.head = start;
        self.gaps.clear();
        // Four windows: more cannot be on its way, so a longer jump is forged or an outage.
        self.max_jump = (u64::from(window) * 4).clamp(64, JUMP_MAX);
    }

    /// Allows one longer jump: the Welcome may let this receiver begin with the oldest of very many
    /// small datagrams.
    pub(super) const fn allow_jump(&mut self) {
        self.jump_allowed = true;
    }

    /// First sequence after all that were received or noticed missing.
    pub(super) const fn head(&self) -> u64 {
        self.head
    }

    /// First sequence that was not received.
    pub(super) fn expected(&self) -> u64 {
        self.gaps.first().map_or(self.head, |gap| gap.first)
    }

    /// The gaps in order.
    pub(super) fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    pub(super) fn gaps_mut(&mut self) -> &mut [Gap] {
        &mut self.gaps
    }

    /// Accepts the next datagram while no gap is open; false, without an effect, for any other.
    #[inline]
    pub(super) fn take_next(&mut self, sequence: u64) -> bool {
        let next = sequence == self.head && self.gaps.is_empty();
        // Without a branch: this runs for every datagram.
        self.head = self.head.wrapping_add(u64::from(next));
        next
    }

    /// Classifies a datagram; the last `skipped` before it were not sent to this receiver.
    pub(super) fn classify(&self, sequence: u64, skipped: u32) -> Arrival {
        let distance = ahead(sequence, self.head);
        let max_jump = if self.jump_allowed { JUMP_MAX } else { self.max_jump };
        if distance >= 0 {
            return match distance as u64 {
                0 => Arrival::New,
                // Skipped datagrams are not missing; but even they are bounded, as the header may
                // be forged.
                far if far > JUMP_MAX || far.saturating_sub(skipped.into()) > max_jump => {
                    Arrival::Implausible
                }
                // The datagram itself is dropped, and is found missing later.
                _ if self.is_full() => Arrival::Overflow,
                _ => Arrival::New,
            };
        }
        if self.overlaps_gap(sequence, sequence.wrapping_add(1)) {
            Arrival::Missing
        } else {
            Arrival::Duplicate
        }
    }

    /// Whether the most gaps are tracked: no further one can be opened.
    pub(super) const fn is_full(&self) -> bool {
        self.gaps.len() >= GAPS_MAX
    }

    /// Advances the head to `to`, with a gap in between except for the last `skipped`; returns the
    /// gap. The head stays if there would be a gap beyond the most that are tracked: the datagrams
    /// are found missing later.
    pub(super) fn advance(&mut self, to: u64, skipped: u32, now: Nanos, due: Nanos) -> Option<Gap> {
        if !before(self.head, to) {
            return None;
        }
        let from = self.head;
        // `skipped` may reach back before the head: those were received.
        let end = later(from, to.wrapping_sub(u64::from(skipped)));
        let count = end.wrapping_sub(from);
        if count > 0 && self.is_full() {
            return None;
        }
        self.head = to;
        // For one jump only: then the sender's position is known.
        self.jump_allowed = false;
        (count > 0).then(|| {
            let gap = Gap::new(from, count, now, due);
            // At the end: a new gap lies after all others, and the list stays in order.
            self.gaps.push(gap);
            gap
        })
    }

    /// The last gap.
    pub(super) fn last_gap(&mut self) -> Option<&mut Gap> {
        self.gaps.last_mut()
    }

    /// Whether a gap overlaps `from..to`.
    pub(super) fn overlaps_gap(&self, from: u64, to: u64) -> bool {
        let at = self.gaps.partition_point(|gap| !before(from, gap.end()));
        before(from, to) && self.gaps.get(at).is_some_and(|gap| before(gap.first, to))
    }

    /// Whether nothing before `sequence` is missing.
    pub(super) fn is_complete_to(&self, sequence: u64) -> bool {
        !before(self.expected(), sequence)
    }

    /// Removes `first..first + count` from the gaps; calls `each` with every part that was missing.
    /// A gap that would become two stays whole when the most are tracked: the datagrams in its
    /// middle are then requested once more.
    pub(super) fn remove(&mut self, first: u64, count: u64, mut each: impl FnMut(&Gap, u64, u64)) {
        let end = first.wrapping_add(count);
        let mut at = self.gaps.partition_point(|gap| !before(first, gap.end()));
        while let Some(gap) = self.gaps.get(at).copied().filter(|gap| before(gap.first, end)) {
            let (from, to) = (later(first, gap.first), earlier(end, gap.end()));
            let left = Gap { count: from.wrapping_sub(gap.first), ..gap };
            let right = Gap { first: to, count: gap.end().wrapping_sub(to), ..gap };
            let splits = left.count > 0 && right.count > 0;
            if !before(from, to) || (splits && self.is_full()) {
                return;
            }
            each(&gap, from, to.wrapping_sub(from));
            match (left.count > 0, right.count > 0) {
                (true, true) => {
                    self.gaps[at] = left;
                    self.gaps.insert(at + 1, right);
                    return;
                }
                (true, false) => {
                    self.gaps[at] = left;
                    at += 1;
                }
                (false, true) => {
                    self.gaps[at] = right;
                    return;
                }
                (false, false) => {
                    self.gaps.remove(at);
                }
            }
        }
    }

    /// Counts `first..end`, as far as it is before the head, as missing again: in gaps next to it
    /// when the most are tracked. Datagrams next to none are forgotten with all behind them then,
    /// and are found missing later.
    pub(super) fn reopen(&mut self, first: u64, end: u64, now: Nanos, due: Nanos) {
        let end = earlier(end, self.head);
        let mut from = first;
        while before(from, end) {
            let at = self.gaps.partition_point(|gap| !before(from, gap.end()));
            let next = self.gaps.get(at).map_or(end, |gap| earlier(end, gap.first));
            if !before(from, next) {
                from = self.gaps[at].end();
            } else if !self.is_full() {
                self.gaps.insert(at, Gap::new(from, next.wrapping_sub(from), now, due));
                from = next;
            } else if self.extend(at, from, next, due) {
                from = next;
            } else {
                self.gaps.truncate(at);
                self.head = from;
                return;
            }
        }
    }

    /// Extends a gap next to `from..to`, which lies before the gap at the index `at`; false if none
    /// is next to it.
    fn extend(&mut self, at: usize, from: u64, to: u64, due: Nanos) -> bool {
        if let Some(gap) = at.checked_sub(1).and_then(|at| self.gaps.get_mut(at))
            && gap.end() == from
        {
            gap.count = to.wrapping_sub(gap.first);
            gap.due = gap.due.min(due);
            return true;
        }
        let Some(gap) = self.gaps.get_mut(at).filter(|gap| gap.first == to) else { return false };
        let count = gap.end().wrapping_sub(from);
        // Its first datagrams were never requested.
        (gap.first, gap.count, gap.asked, gap.tries) = (from, count, from, 0);
        gap.due = gap.due.min(due);
        true
    }

    /// Counts everything from `start` on as missing again, no further back than a plausible jump.
    pub(super) fn reopen_from(&mut self, start: u64, now: Nanos) {
        // Bounded: `start` comes from the network.
        let first = later(start, self.head.wrapping_sub(self.max_jump));
        self.reopen(first, self.head, now, now);
    }

    /// Extends the recovery time of all gaps by the time that this process did not run.
    pub(super) fn extend_deadlines(&mut self, absence: Nanos, now: Nanos) {
        for gap in &mut self.gaps {
            // Repairs may wait unread in the socket: the receiver, not the sender, was late.
            gap.noticed = gap.noticed.saturating_add(absence).min(now);
        }
    }

    /// Time at which the first gap expires.
    pub(super) fn next_expiry(&self, times: GapTimes) -> Option<Nanos> {
        self.gaps.iter().map(|gap| times.expiry(gap)).min()
    }

    /// A gap whose time is over.
    pub(super) fn expired(&self, now: Nanos, times: GapTimes) -> Option<Gap> {
        self.gaps.iter().find(|gap| times.expiry(gap) <= now).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = u64::MAX - 4;

    fn at(offset: u64) -> u64 {
        START.wrapping_add(offset)
    }

    fn with_gap(from: u64, to: u64) -> GapTracker {
        let mut tracker = GapTracker::new();
        tracker.begin(at(0), 100);
        (0..from).for_each(|offset| assert!(tracker.take_next(at(offset))));
        tracker.advance(at(to), 0, 7, 7).expect("a gap");
        tracker
    }

    #[test]
    fn a_gap_is_noticed_split_and_filled() {
        let mut tracker = with_gap(2, 8);
        assert_eq!((tracker.expected(), tracker.head()), (at(2), at(8)));
        assert!(!tracker.take_next(at(8)), "something is missing");
        let mut told = Vec::new();
        tracker.remove(at(5), 1, |gap, first, count| told.push((gap.noticed, first, count)));
        assert_eq!(told, [(7, at(5), 1)]);
        assert_eq!(tracker.gaps().len(), 2);
        assert_eq!(tracker.classify(at(5), 0), Arrival::Duplicate);
        assert_eq!(tracker.classify(at(6), 0), Arrival::Missing);
        tracker.remove(at(0), 7, |_, _, _| {});
        assert_eq!(tracker.expected(), at(7));
        tracker.remove(at(7), 100, |_, _, _| {});
        assert!(tracker.is_complete_to(at(8)) && tracker.take_next(at(8)));
    }

    #[test]
    fn only_overlapping_ranges_touch_a_gap() {
        let tracker = with_gap(3, 6);
        let may = |from, to| tracker.overlaps_gap(at(from), at(to));
        assert!(may(0, 4) && may(5, 6) && may(4, 5) && may(0, 9));
        assert!(!may(0, 3) && !may(6, 9) && !may(4, 4) && !may(1, 2));
    }

    #[test]
    fn skipped_datagrams_are_not_missing() {
        let mut tracker = with_gap(0, 1);
        assert_eq!(tracker.advance(at(5), 2, 9, 9).map(|gap| gap.count), Some(2));
        assert!(tracker.advance(at(9), 7, 9, 9).is_none());
        assert!(!tracker.overlaps_gap(at(3), at(9)));
    }

    #[test]
    fn far_jumps_and_endless_gaps_are_refused() {
        let mut tracker = with_gap(0, 1);
        assert_eq!(tracker.classify(at(1 + 401), 0), Arrival::Implausible);
        assert_eq!(tracker.classify(at(1 + 400), 0), Arrival::New);
        for _ in tracker.gaps().len()..GAPS_MAX {
            let head = tracker.head();
            tracker.advance(head.wrapping_add(2), 1, 0, 0);
        }
        let head = tracker.head();
        assert_eq!(tracker.classify(head.wrapping_add(1), 0), Arrival::Overflow);
        assert_eq!(tracker.classify(head, 0), Arrival::New);
    }

    /// Every second datagram is missing, up to the most gaps.
    fn full() -> GapTracker {
        let mut tracker = with_gap(0, 1);
        while !tracker.is_full() {
            let head = tracker.head();
            tracker.advance(head.wrapping_add(2), 1, 0, 0);
        }
        tracker
    }

    #[test]
    fn a_datagram_beyond_the_most_gaps_is_missing_later() {
        let mut tracker = full();
        let head = tracker.head();
        assert!(tracker.advance(head.wrapping_add(5), 0, 0, 0).is_none());
        assert_eq!(tracker.head(), head, "no datagram is passed over");
        // The next one comes behind a gap, and there is no room for it.
        let first = tracker.expected();
        tracker.remove(first, 1, |_, _, _| {});
        tracker.advance(head.wrapping_add(1), 0, 0, 0).expect("a gap");
        let head = tracker.head();
        assert!(tracker.advance(head.wrapping_add(1), 1, 0, 0).is_none());
        assert_eq!(tracker.head(), head.wrapping_add(1));
        let last = *tracker.gaps().last().expect("gaps");
        tracker.reopen(head, head.wrapping_add(1), 9, 9);
        let extended = tracker.gaps().last().expect("gaps");
        assert_eq!((extended.first, extended.count), (last.first, last.count + 1));
        assert!(tracker.is_full() && tracker.overlaps_gap(head, tracker.head()));
        // One with received datagrams before it is forgotten.
        let head = tracker.head();
        tracker.advance(head.wrapping_add(2), 2, 0, 0);
        tracker.reopen(head.wrapping_add(1), head.wrapping_add(2), 9, 9);
        assert_eq!(tracker.head(), head.wrapping_add(1));
        assert_eq!(tracker.classify(head.wrapping_add(1), 0), Arrival::New);
    }

    #[test]
    fn everything_counts_as_missing_again_though_the_most_gaps_are_tracked() {
        let mut tracker = full();
        tracker.begin(at(0), 1 << 18);
        tracker.advance(at(10), 10, 0, 0);
        while !tracker.is_full() {
            let head = tracker.head();
            tracker.advance(head.wrapping_add(1), 0, 0, 0);
            tracker.advance(head.wrapping_add(3), 2, 0, 0);
        }
        tracker.gaps_mut().iter_mut().for_each(|gap| (gap.asked, gap.due) = (gap.end(), 99));
        let head = tracker.head();
        tracker.reopen_from(at(5), 7);
        assert_eq!((tracker.expected(), tracker.head()), (at(5), head));
        let mut next = at(5);
        for gap in tracker.gaps() {
            assert_eq!((gap.first, gap.due), (next, 7), "without a hole, and asked for at once");
            assert!(before(gap.asked, gap.end()), "not asked for so far");
            next = gap.end();
        }
        assert_eq!((next, tracker.gaps().len()), (head, GAPS_MAX));
    }

    #[test]
    fn skipped_datagrams_do_not_count_as_a_jump() {
        let tracker = with_gap(0, 1);
        assert_eq!(tracker.classify(at(1 + 900), 500), Arrival::New);
        assert_eq!(tracker.classify(at(1 + 901), 500), Arrival::Implausible);
        assert_eq!(tracker.classify(at(2 + JUMP_MAX), u32::MAX), Arrival::Implausible);
    }

    #[test]
    fn empty_ranges_and_too_many_splits_change_nothing() {
        let mut tracker = with_gap(0, 1);
        tracker.begin(at(0), 1 << 18);
        tracker.advance(at(3 * GAPS_MAX as u64), 0, 0, 0).expect("a gap");
        let mut told = 0;
        tracker.remove(at(5), 0, |_, _, _| told += 1);
        assert_eq!((told, tracker.gaps().len()), (0, 1));
        for offset in 0..2 * GAPS_MAX as u64 {
            tracker.remove(at(1 + 2 * offset), 1, |_, _, _| told += 1);
        }
        assert_eq!((told, tracker.gaps().len()), (GAPS_MAX, GAPS_MAX));
    }

    #[test]
    fn reopening_leaves_gaps_alone_and_stops_at_the_head() {
        let mut tracker = with_gap(3, 6);
        tracker.reopen(at(1), at(20), 11, 12);
        let gaps: Vec<_> = tracker.gaps().iter().map(|gap| (gap.first, gap.count)).collect();
        assert_eq!(gaps, [(at(1), 2), (at(3), 3)]);
        let times = GapTimes { live: 10, history: 100 };
        assert_eq!(tracker.expired(17, times).map(|gap| gap.first), Some(at(3)));
        assert_eq!(tracker.next_expiry(times), Some(17));
        tracker.gaps_mut().iter_mut().for_each(|gap| gap.history = true);
        assert_eq!(tracker.expired(17, times).map(|gap| gap.first), None);
        assert_eq!(tracker.next_expiry(times), Some(107));
    }
}
