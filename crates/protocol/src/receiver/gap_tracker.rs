//! Which datagrams have come, and which are missing.

use crate::Nanos;
use crate::sequence::{ahead, before, earlier, later};

/// How many runs of missing datagrams are remembered.
const GAPS_MAX: usize = 4_096;
/// The largest jump that is believed, in datagrams.
const REACH_MAX: u64 = 1 << 20;

/// A run of missing datagrams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    pub(super) first: u64,
    pub(super) count: u64,
    pub(super) noticed: Nanos,
    /// When to ask for it.
    pub(super) due: Nanos,
    /// How often it was asked for.
    pub(super) tries: u32,
    /// How often others' asking has put off this receiver's.
    pub(super) confirms: u32,
    /// The first sequence that has not been asked for.
    pub(super) asked: u64,
    /// What was sent before this receiver joined: asked for slice by slice.
    pub(super) history: bool,
}

impl Gap {
    pub(super) const fn new(first: u64, count: u64, noticed: Nanos, due: Nanos) -> Self {
        Self { first, count, noticed, due, tries: 0, confirms: 0, asked: first, history: false }
    }

    /// The first sequence after it.
    pub(super) const fn end(&self) -> u64 {
        self.first.wrapping_add(self.count)
    }
}

/// Where a datagram belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At the head or ahead of it.
    New,
    /// In a gap.
    Missing,
    /// It came before, or was given up.
    Old,
    /// Too far ahead to be believed.
    Absurd,
    /// Ahead, with too many gaps to remember another.
    Full,
}

/// Every datagram before `head` has come or was given up, but for the gaps.
#[derive(Debug)]
pub(super) struct GapTracker {
    head: u64,
    gaps: Vec<Gap>,
    reach: u64,
    /// The next jump is from where the sender said to where it is: all that it keeps.
    may_leap: bool,
}

impl GapTracker {
    pub(super) const fn new() -> Self {
        Self { head: 0, gaps: Vec::new(), reach: 0, may_leap: false }
    }

    /// Begins at `start`; believes jumps of four of the larger window.
    pub(super) fn begin(&mut self, start: u64, window: u32) {
        self.head = start;
        self.gaps.clear();
        self.reach = (u64::from(window) * 4).clamp(64, REACH_MAX);
    }

    /// Believes a longer jump, once: the sender has said where this receiver goes on, which may be
    /// with the oldest of very many small datagrams.
    pub(super) const fn expect_leap(&mut self) {
        self.may_leap = true;
    }

    /// The first sequence that nothing is known of.
    pub(super) const fn head(&self) -> u64 {
        self.head
    }

    /// The first sequence that has not come.
    pub(super) fn expected(&self) -> u64 {
        self.gaps.first().map_or(self.head, |gap| gap.first)
    }

    /// The gaps, the earliest first.
    pub(super) fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    pub(super) fn gaps_mut(&mut self) -> &mut [Gap] {
        &mut self.gaps
    }

    /// Takes a datagram that is next while nothing is missing; false, and nothing happens, if it
    /// is another.
    #[inline]
    pub(super) fn take_next(&mut self, sequence: u64) -> bool {
        let next = sequence == self.head && self.gaps.is_empty();
        self.head = self.head.wrapping_add(u64::from(next));
        next
    }

    /// Where the datagram belongs, the last `skipped` before which are unwanted.
    pub(super) fn place(&self, sequence: u64, skipped: u32) -> Place {
        let distance = ahead(sequence, self.head);
        let reach = if self.may_leap { REACH_MAX } else { self.reach };
        if distance >= 0 {
            return match distance as u64 {
                0 => Place::New,
                far if far > REACH_MAX || far.saturating_sub(skipped.into()) > reach => {
                    Place::Absurd
                }
                _ if self.gaps.len() >= GAPS_MAX => Place::Full,
                _ => Place::New,
            };
        }
        if self.may_hold(sequence, sequence.wrapping_add(1)) { Place::Missing } else { Place::Old }
    }

    /// Moves the head on to `to`; what lies between is missing, but for the last `skipped`. Gives
    /// the new gap.
    pub(super) fn advance(&mut self, to: u64, skipped: u32, now: Nanos, due: Nanos) -> Option<Gap> {
        if !before(self.head, to) {
            return None;
        }
        let from = self.head;
        self.head = to;
        self.may_leap = false;
        let end = later(from, to.wrapping_sub(u64::from(skipped)));
        let count = end.wrapping_sub(from);
        (count > 0).then(|| {
            let gap = Gap::new(from, count, now, due);
            self.gaps.push(gap);
            gap
        })
    }

    /// The last gap, which `advance` has just made.
    pub(super) fn last_gap(&mut self) -> Option<&mut Gap> {
        self.gaps.last_mut()
    }

    /// Whether any of `from..to` is missing.
    pub(super) fn may_hold(&self, from: u64, to: u64) -> bool {
        let at = self.gaps.partition_point(|gap| !before(from, gap.end()));
        before(from, to) && self.gaps.get(at).is_some_and(|gap| before(gap.first, to))
    }

    /// Whether all that is missing starts at `sequence` or later.
    pub(super) fn complete_to(&self, sequence: u64) -> bool {
        !before(self.expected(), sequence)
    }

    /// Takes `first..first + count` out of the gaps; tells each part that was missing. A gap that
    /// would become two stays as it is when there are too many to remember another: what came in
    /// the middle of it comes again.
    pub(super) fn settle(&mut self, first: u64, count: u64, mut each: impl FnMut(&Gap, u64, u64)) {
        let end = first.wrapping_add(count);
        let mut at = self.gaps.partition_point(|gap| !before(first, gap.end()));
        while let Some(gap) = self.gaps.get(at).copied().filter(|gap| before(gap.first, end)) {
            let (from, to) = (later(first, gap.first), earlier(end, gap.end()));
            let left = Gap { count: from.wrapping_sub(gap.first), ..gap };
            let right = Gap { first: to, count: gap.end().wrapping_sub(to), ..gap };
            let splits = left.count > 0 && right.count > 0;
            if !before(from, to) || (splits && self.gaps.len() >= GAPS_MAX) {
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

    /// Counts `first..end` as missing again; what lies at the head or after it is left out.
    pub(super) fn reopen(&mut self, first: u64, end: u64, now: Nanos, due: Nanos) {
        let end = earlier(end, self.head);
        let mut from = first;
        while before(from, end) && self.gaps.len() < GAPS_MAX {
            let at = self.gaps.partition_point(|gap| !before(from, gap.end()));
            let next = self.gaps.get(at).map_or(end, |gap| earlier(end, gap.first));
            if before(from, next) {
                self.gaps.insert(at, Gap::new(from, next.wrapping_sub(from), now, due));
                from = next;
            } else {
                from = self.gaps[at].end();
            }
        }
    }

    /// Counts what came from `start` on as missing again, no further back than jumps are believed.
    pub(super) fn reopen_from(&mut self, start: u64, now: Nanos) {
        let first = later(start, self.head.wrapping_sub(self.reach));
        self.reopen(first, self.head, now, now);
    }

    /// Nobody looked for a while: that does not count as time for recovery.
    pub(super) fn excuse(&mut self, absence: Nanos, now: Nanos) {
        for gap in &mut self.gaps {
            gap.noticed = gap.noticed.saturating_add(absence).min(now);
        }
    }

    /// When the first gap's time is over.
    pub(super) fn next_expiry(&self, recovery: Nanos) -> Option<Nanos> {
        self.gaps.iter().map(|gap| gap.noticed.saturating_add(recovery)).min()
    }

    /// A gap whose time is over.
    pub(super) fn expired(&self, now: Nanos, recovery: Nanos) -> Option<Gap> {
        self.gaps.iter().find(|gap| gap.noticed.saturating_add(recovery) <= now).copied()
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
        tracker.settle(at(5), 1, |gap, first, count| told.push((gap.noticed, first, count)));
        assert_eq!(told, [(7, at(5), 1)]);
        assert_eq!(tracker.gaps().len(), 2);
        assert_eq!(tracker.place(at(5), 0), Place::Old);
        assert_eq!(tracker.place(at(6), 0), Place::Missing);
        tracker.settle(at(0), 7, |_, _, _| {});
        assert_eq!(tracker.expected(), at(7));
        tracker.settle(at(7), 100, |_, _, _| {});
        assert!(tracker.complete_to(at(8)) && tracker.take_next(at(8)));
    }

    #[test]
    fn only_what_overlaps_a_gap_may_be_in_it() {
        let tracker = with_gap(3, 6);
        let may = |from, to| tracker.may_hold(at(from), at(to));
        assert!(may(0, 4) && may(5, 6) && may(4, 5) && may(0, 9));
        assert!(!may(0, 3) && !may(6, 9) && !may(4, 4) && !may(1, 2));
    }

    #[test]
    fn what_was_skipped_is_not_missing() {
        let mut tracker = with_gap(0, 1);
        assert_eq!(tracker.advance(at(5), 2, 9, 9).map(|gap| gap.count), Some(2));
        assert!(tracker.advance(at(9), 7, 9, 9).is_none());
        assert!(!tracker.may_hold(at(3), at(9)));
    }

    #[test]
    fn far_jumps_and_endless_gaps_are_refused() {
        let mut tracker = with_gap(0, 1);
        assert_eq!(tracker.place(at(1 + 401), 0), Place::Absurd);
        assert_eq!(tracker.place(at(1 + 400), 0), Place::New);
        for _ in tracker.gaps().len()..GAPS_MAX {
            let head = tracker.head();
            tracker.advance(head.wrapping_add(2), 1, 0, 0);
        }
        let head = tracker.head();
        assert_eq!(tracker.place(head.wrapping_add(1), 0), Place::Full);
        assert_eq!(tracker.place(head, 0), Place::New);
    }

    #[test]
    fn what_was_skipped_makes_no_jump_too_far() {
        let tracker = with_gap(0, 1);
        assert_eq!(tracker.place(at(1 + 900), 500), Place::New);
        assert_eq!(tracker.place(at(1 + 901), 500), Place::Absurd);
        assert_eq!(tracker.place(at(2 + REACH_MAX), u32::MAX), Place::Absurd);
    }

    #[test]
    fn nothing_and_endless_splits_change_nothing() {
        let mut tracker = with_gap(0, 1);
        tracker.begin(at(0), 1 << 18);
        tracker.advance(at(3 * GAPS_MAX as u64), 0, 0, 0).expect("a gap");
        let mut told = 0;
        tracker.settle(at(5), 0, |_, _, _| told += 1);
        assert_eq!((told, tracker.gaps().len()), (0, 1));
        for offset in 0..2 * GAPS_MAX as u64 {
            tracker.settle(at(1 + 2 * offset), 1, |_, _, _| told += 1);
        }
        assert_eq!((told, tracker.gaps().len()), (GAPS_MAX, GAPS_MAX));
    }

    #[test]
    fn reopening_leaves_gaps_alone_and_stops_at_the_head() {
        let mut tracker = with_gap(3, 6);
        tracker.reopen(at(1), at(20), 11, 12);
        let gaps: Vec<_> = tracker.gaps().iter().map(|gap| (gap.first, gap.count)).collect();
        assert_eq!(gaps, [(at(1), 2), (at(3), 3)]);
        assert_eq!(tracker.expired(17, 10).map(|gap| gap.first), Some(at(3)));
        assert_eq!(tracker.next_expiry(10), Some(17));
    }
}
