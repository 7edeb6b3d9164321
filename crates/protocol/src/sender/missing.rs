//! Ranges of datagrams that one receiver has requested again.

use super::token_bucket::TokenBucket;
use crate::Nanos;
use crate::sequence::{ahead, before, earlier, later};

/// Most ranges of a receiver, and most that one NAK is read for.
pub(super) const RANGES_MAX: usize = 256;

/// Requested datagrams that were not sent again yet, and the receiver's share of the budget.
#[derive(Debug)]
pub(super) struct MissingRanges {
    /// Half-open ranges in order.
    ranges: Vec<(u64, u64)>,
    /// The receiver asked for repairs sent to it alone.
    pub(super) alone: bool,
    /// Parity is an answer to the receiver, too.
    pub(super) takes_parity: bool,
    /// Share of the repair budget.
    pub(super) share: TokenBucket,
    /// The share was exceeded; until it has recovered, repairs go to this receiver alone.
    pub(super) over_share: bool,
    /// The receiver was told that its repairs wait.
    pub(super) told_to_wait: bool,
}

impl MissingRanges {
    pub(super) fn new(rate: u64, now: Nanos) -> Self {
        let share = TokenBucket::new(rate, now);
        Self {
            ranges: Vec::new(),
            alone: false,
            takes_parity: false,
            share,
            over_share: false,
            told_to_wait: false,
        }
    }

    /// Adds a range, merged with its neighbours; false if there is no room for it.
    pub(super) fn add(&mut self, mut first: u64, mut end: u64) -> bool {
        let touches = |range: &(u64, u64)| ahead(range.0, end) <= 0 && ahead(first, range.1) <= 0;
        if let Some(from) = self.ranges.iter().position(touches) {
            let count = self.ranges[from..].iter().take_while(|range| touches(range)).count();
            // One new range may close the space between several old ones.
            for (a, b) in self.ranges.drain(from..from + count) {
                (first, end) = (earlier(first, a), later(end, b));
            }
        } else if self.ranges.len() >= RANGES_MAX {
            // A merge needs no room, so only a new range is refused.
            return false;
        }
        let at = self.ranges.iter().position(|range| before(first, range.0));
        self.ranges.insert(at.unwrap_or(self.ranges.len()), (first, end));
        true
    }

    /// Removes everything before `end`: received, sent again or reported as void.
    pub(super) fn remove_to(&mut self, end: u64) {
        self.ranges.retain_mut(|range| {
            range.0 = later(range.0, end);
            // Cut to nothing: the range goes.
            before(range.0, range.1)
        });
    }

    pub(super) fn first(&self) -> Option<(u64, u64)> {
        self.ranges.first().copied()
    }

    /// Whether the datagram is requested.
    pub(super) fn contains(&self, sequence: u64) -> bool {
        let at = self.ranges.partition_point(|range| !before(sequence, range.1));
        self.ranges.get(at).is_some_and(|range| !before(sequence, range.0))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_kept_in_order_and_merged() {
        let mut missing = MissingRanges::new(1, 0);
        let at = |offset: u64| (u64::MAX - 10).wrapping_add(offset);
        for (first, end) in [(20, 22), (0, 4), (10, 12)] {
            assert!(missing.add(at(first), at(end)));
        }
        assert_eq!(missing.ranges, [(at(0), at(4)), (at(10), at(12)), (at(20), at(22))]);
        assert!(missing.add(at(3), at(15)));
        assert_eq!(missing.ranges, [(at(0), at(15)), (at(20), at(22))]);
        missing.remove_to(at(6));
        assert_eq!(missing.ranges[0], (at(6), at(15)));
        missing.remove_to(at(30));
        assert!(missing.is_empty());
    }

    #[test]
    fn the_number_of_ranges_is_bounded() {
        let mut missing = MissingRanges::new(1, 0);
        let added = (0..1_000u64).filter(|n| missing.add(n * 10, n * 10 + 1)).count();
        assert_eq!((added, missing.ranges.len()), (RANGES_MAX, RANGES_MAX));
        assert!(missing.add(5, 10_000), "merges into what is there");
        assert_eq!(missing.ranges.len(), 2);
    }
}
