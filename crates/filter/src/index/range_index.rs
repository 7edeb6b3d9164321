//! Ranges of one field, searched for those that contain a number.
//!
//! Up to 32 ranges are scanned linearly, ordered by their lower ends: one cache miss loads them
//! all.
//!
//! Larger sets are split by shape. One-sided ranges are sorted by their end, so the matching ones
//! form a prefix or a suffix. Two-sided ranges are grouped by length (powers of two): in a group,
//! matches start within the longest length before the number, and all that start within the
//! shortest length match.

use super::interval_blocks::IntervalBlocks;
use super::sorted_blocks::SortedBlocks;
use super::target::Target;

/// Largest set that is scanned linearly, which is then faster than searching.
const SMALL_MAX: usize = 32;

/// Range of ordinals, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Range {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// The full range: all numbers and texts.
impl Default for Range {
    fn default() -> Self {
        Self { low: 0, high: u64::MAX }
    }
}

/// Ranges with their targets.
#[derive(Clone, Debug, Default)]
pub(crate) struct RangeIndex {
    /// Sorted; empty once the set is large.
    small: Vec<(Range, Target)>,
    large: Option<Box<LargeRangeSet>>,
}

/// Ranges of a large set.
#[derive(Clone, Debug, Default)]
struct LargeRangeSet {
    /// Ranges without upper end, by lower end.
    from: SortedBlocks<(u64, Target)>,
    /// Ranges without lower end, by upper end.
    to: SortedBlocks<(u64, Target)>,
    classes: Vec<LengthClass>,
}

/// Ranges of similar length.
#[derive(Clone, Debug)]
struct LengthClass {
    /// Binary logarithm of the length.
    size: u32,
    intervals: IntervalBlocks,
}

impl RangeIndex {
    pub(crate) fn is_empty(&self) -> bool {
        self.small.is_empty() && self.large.is_none()
    }

    pub(crate) fn insert(&mut self, range: Range, target: Target) {
        if let Some(large) = &mut self.large {
            return large.insert(range, target);
        }
        let at = self.small.partition_point(|other| *other < (range, target));
        self.small.insert(at, (range, target));
        if self.small.len() > SMALL_MAX {
            // A set that shrinks again stays large until it is empty, so nothing flips back and
            // forth.
            let large = self.large.insert(Box::default());
            for (range, target) in std::mem::take(&mut self.small) {
                large.insert(range, target);
            }
        }
    }

    pub(crate) fn remove(&mut self, range: Range, target: Target) {
        if let Some(large) = &mut self.large {
            large.remove(range, target);
            if large.is_empty() {
                self.large = None;
            }
        } else if let Ok(at) = self.small.binary_search(&(range, target)) {
            self.small.remove(at);
        }
    }

    /// Adds the targets of all ranges to `found` that end at or after `least` and start at or
    /// before `most`; for a single number both are its ordinal.
    #[inline]
    pub(crate) fn find(&self, least: u64, most: u64, found: &mut Vec<u32>) {
        for (range, target) in &self.small {
            // Sorted by lower end: all further ranges start later.
            if range.low > most {
                return;
            }
            if range.high >= least {
                found.push(target.0);
            }
        }
        if let Some(large) = &self.large {
            large.find(least, most, found);
        }
    }
}

impl LargeRangeSet {
    fn is_empty(&self) -> bool {
        self.from.is_empty() && self.to.is_empty() && self.classes.is_empty()
    }

    fn insert(&mut self, Range { low, high }: Range, target: Target) {
        // The greatest upper end means no upper limit: the lower end alone decides.
        if high == u64::MAX {
            return self.from.insert((low, target));
        }
        if low == 0 {
            return self.to.insert((high, target));
        }
        let size = size_of(high - low);
        // At most 64 classes exist, one for each power of two.
        let at = match self.classes.iter().position(|class| class.size == size) {
            Some(at) => at,
            None => {
                self.classes.push(LengthClass { size, intervals: IntervalBlocks::default() });
                self.classes.len() - 1
            }
        };
        self.classes[at].intervals.insert(low, high, target);
    }

    fn remove(&mut self, Range { low, high }: Range, target: Target) {
        if high == u64::MAX {
            return self.from.remove((low, target));
        }
        if low == 0 {
            return self.to.remove((high, target));
        }
        let size = size_of(high - low);
        if let Some(at) = self.classes.iter().position(|class| class.size == size) {
            self.classes[at].intervals.remove(low, high, target);
            if self.classes[at].intervals.is_empty() {
                // A class without ranges would still cost a search per match.
                self.classes.swap_remove(at);
            }
        }
    }

    fn find(&self, least: u64, most: u64, found: &mut Vec<u32>) {
        // Ranges without an upper limit that start at or below `most` form a prefix.
        for run in self.from.to(|&(low, _)| low <= most) {
            found.extend(run.iter().map(|&(_, target)| target.0));
        }
        // Ranges without a lower limit that reach `least` form a suffix.
        for run in self.to.from(|&(high, _)| high < least) {
            found.extend(run.iter().map(|&(_, target)| target.0));
        }
        for class in &self.classes {
            class.intervals.find(least, most, found);
        }
    }
}

fn size_of(length: u64) -> u32 {
    // A length of 0 has no logarithm and joins the class of length 1.
    length.max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range() -> BoxedStrategy<Range> {
        let end = || prop_oneof![3 => 1..60_u64, 1 => Just(1 << 40)];
        prop_oneof![
            1 => end().prop_map(|low| Range { low, ..Range::default() }),
            1 => end().prop_map(|high| Range { high, ..Range::default() }),
            3 => (end(), end())
                .prop_map(|(one, other)| Range { low: one.min(other), high: one.max(other) }),
            1 => Just(Range::default()),
        ]
        .boxed()
    }

    proptest! {
        #[test]
        fn the_range_index_finds_exactly_the_ranges_that_contain_the_number(
            ranges in prop::collection::vec(range(), 0..80),
            removed in prop::collection::vec(any::<bool>(), 80),
            least in 0..64_u64,
            length in 0..3_u64,
        ) {
            let mut index = RangeIndex::default();
            for (id, range) in ranges.iter().enumerate() {
                index.insert(*range, Target(id as u32));
            }
            let removed = |id: usize| removed[id];
            for (id, range) in ranges.iter().enumerate().filter(|(id, _)| removed(*id)) {
                index.remove(*range, Target(id as u32));
            }
            let most = least + length;
            let mut found = Vec::new();
            index.find(least, most, &mut found);
            found.sort_unstable();
            let wanted = |(id, range): &(usize, &Range)| {
                !removed(*id) && range.high >= least && range.low <= most
            };
            let wanted = ranges.iter().enumerate().filter(wanted).map(|(id, _)| id as u32);
            prop_assert_eq!(found, wanted.collect::<Vec<u32>>());
            for (id, range) in ranges.iter().enumerate().filter(|(id, _)| !removed(*id)) {
                index.remove(*range, Target(id as u32));
            }
            prop_assert!(index.is_empty());
        }
    }
}
