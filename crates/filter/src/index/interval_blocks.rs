//! Two-sided ranges sorted by lower end, in blocks of columns.
//!
//! The upper end of a range needs no check if the range is longer than the distance of the number
//! from its lower end: a search then reads lower ends only and copies targets.

use super::target::Target;
use smallvec::SmallVec;

/// Largest block; a larger one is split.
const BLOCK_MAX: usize = 256;

/// Ranges of similar length.
#[derive(Clone, Debug)]
pub(crate) struct IntervalBlocks {
    /// Non-empty blocks, most often one.
    blocks: SmallVec<[Block; 1]>,
    /// First lower end of each block.
    firsts: SmallVec<[u64; 1]>,
    /// Upper bound of all lengths.
    longest: u64,
    /// Upper bound of all upper ends.
    last: u64,
}

#[derive(Clone, Debug)]
struct Block {
    /// Lower bound of all lengths in the block. Lengths are mostly equal, which makes checks of
    /// upper ends unnecessary.
    shortest: u64,
    lows: Vec<u64>,
    highs: Vec<u64>,
    targets: Vec<u32>,
}

impl Default for IntervalBlocks {
    fn default() -> Self {
        let (blocks, firsts) = (SmallVec::new(), SmallVec::new());
        Self { blocks, firsts, longest: 0, last: 0 }
    }
}

impl IntervalBlocks {
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(crate) fn insert(&mut self, low: u64, high: u64, target: Target) {
        // Both maxima only grow: after removals they may be too large, which costs time, not
        // results.
        self.longest = self.longest.max(high - low);
        self.last = self.last.max(high);
        if self.blocks.is_empty() {
            self.blocks.push(Block::empty());
            self.firsts.push(low);
        }
        // `firsts` and `blocks` are equally long and not empty by now, so the index exists.
        let at = self.firsts.partition_point(|first| *first <= low).saturating_sub(1);
        let block = &mut self.blocks[at];
        let place = block.lows.partition_point(|other| *other <= low);
        block.insert(place, low, high, target);
        // A range that starts before all others becomes the first of its block.
        self.firsts[at] = block.lows[0];
        if block.lows.len() > BLOCK_MAX {
            // Both halves measure their shortest range anew, as either may have lost it.
            let tail = block.split();
            self.firsts.insert(at + 1, tail.lows[0]);
            self.blocks.insert(at + 1, tail);
        }
    }

    /// Removes a range if present.
    pub(crate) fn remove(&mut self, low: u64, high: u64, target: Target) {
        // Ranges with one lower end may span several blocks.
        let mut at = self.block_of(low);
        // No block is empty, so `lows[0]` exists.
        while let Some(block) = self.blocks.get_mut(at).filter(|block| block.lows[0] <= low) {
            if let Some(place) = block.find(low, high, target) {
                block.remove(place);
                match block.lows.first() {
                    Some(first) => self.firsts[at] = *first,
                    None => {
                        self.blocks.remove(at);
                        self.firsts.remove(at);
                    }
                }
                return;
            }
            at += 1;
        }
    }

    /// Adds the targets of all ranges to `found` that end at or after `least` and start at or
    /// before `most`.
    #[inline]
    pub(crate) fn find(&self, least: u64, most: u64, found: &mut Vec<u32>) {
        // Two comparisons tell that no range can match.
        if self.last < least || self.firsts.first().is_none_or(|first| *first > most) {
            return;
        }
        // Ranges that start earlier end before `least`.
        let start = least.saturating_sub(self.longest);
        let from = self.block_of(start);
        for (at, block) in self.blocks.iter().enumerate().skip(from) {
            // Blocks are sorted, so the bounds within a block are binary searches.
            let point = |limit: u64| block.lows.partition_point(|low| *low < limit);
            let goes_on = self.firsts.get(at + 1).is_some_and(|first| *first <= most);
            let end = if goes_on {
                block.lows.len()
            } else {
                block.lows.partition_point(|low| *low <= most)
            };
            // Only the first block visited can hold ranges that start before `start`.
            let begin = if start > block.lows[0] { point(start).min(end) } else { 0 };
            // From this lower end on even the shortest range reaches `least`.
            let certain = least.saturating_sub(block.shortest);
            // Most often all lengths of a block are equal and no upper end has to be read.
            let is_sure = block.lows.get(begin).is_none_or(|low| *low >= certain);
            // Upper ends are read below `sure` only; later targets are copied as they are.
            let sure = if is_sure { begin } else { point(certain).min(end) };
            let ends = block.highs[begin..sure].iter();
            for (high, target) in ends.zip(&block.targets[begin..sure]) {
                if *high >= least {
                    found.push(*target);
                }
            }
            found.extend_from_slice(&block.targets[sure..end]);
            // Blocks are sorted by lower end: later ones start past `most`.
            if !goes_on {
                break;
            }
        }
    }

    /// The last block that starts before `low`, or the first one.
    #[inline]
    fn block_of(&self, low: u64) -> usize {
        self.firsts.partition_point(|first| *first < low).saturating_sub(1)
    }
}

impl Block {
    const fn empty() -> Self {
        Self { shortest: u64::MAX, lows: Vec::new(), highs: Vec::new(), targets: Vec::new() }
    }

    fn insert(&mut self, place: usize, low: u64, high: u64, target: Target) {
        // Columns instead of triples: a search over lower ends loads nothing else.
        self.shortest = self.shortest.min(high - low);
        self.lows.insert(place, low);
        self.highs.insert(place, high);
        self.targets.insert(place, target.0);
    }

    fn remove(&mut self, place: usize) {
        // `shortest` stays: a minimum that is too small only costs reads of upper ends.
        self.lows.remove(place);
        self.highs.remove(place);
        self.targets.remove(place);
    }

    /// Splits off the second half.
    fn split(&mut self) -> Self {
        let half = self.lows.len() / 2;
        let mut tail = Self {
            lows: self.lows.split_off(half),
            highs: self.highs.split_off(half),
            targets: self.targets.split_off(half),
            ..Self::empty()
        };
        self.measure();
        tail.measure();
        tail
    }

    fn measure(&mut self) {
        let lengths = self.lows.iter().zip(&self.highs).map(|(low, high)| high - low);
        self.shortest = lengths.min().unwrap_or(u64::MAX);
    }

    /// Position of a range.
    fn find(&self, low: u64, high: u64, target: Target) -> Option<usize> {
        let start = self.lows.partition_point(|other| *other < low);
        let same = self.lows[start..].iter().take_while(|other| **other == low).count();
        // Upper ends and targets of equal lower ends are not sorted, hence the scan.
        (start..start + same).find(|at| (self.highs[*at], self.targets[*at]) == (high, target.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_are_cut_and_go() {
        let mut intervals = IntervalBlocks::default();
        for number in 0..4_000_u32 {
            let low = u64::from(number % 100) * 10;
            intervals.insert(low, low + 10 + u64::from(number % 3), Target(number));
        }
        assert!(intervals.blocks.len() > 5 && intervals.firsts.len() == intervals.blocks.len());
        let mut found = Vec::new();
        intervals.find(505, 505, &mut found);
        assert_eq!(found.len(), 40, "those that start at 500");
        for number in 0..4_000_u32 {
            let low = u64::from(number % 100) * 10;
            intervals.remove(low, low + 10 + u64::from(number % 3), Target(number));
        }
        assert!(intervals.is_empty() && intervals.firsts.is_empty());
    }

    proptest! {
        #[test]
        fn interval_blocks_find_exactly_the_overlapping_intervals(
            ranges in prop::collection::vec((1..300_u64, 4..9_u64, any::<bool>()), 0..1_500),
            least in 0..320_u64,
            length in 0..3_u64,
        ) {
            let mut intervals = IntervalBlocks::default();
            let id = |at: usize| Target(at as u32);
            for (at, (low, length, _)) in ranges.iter().enumerate() {
                intervals.insert(*low, low + length, id(at));
            }
            for (at, (low, length, _)) in ranges.iter().enumerate().filter(|(_, range)| range.2) {
                intervals.remove(*low, low + length, id(at));
            }
            let most = least + length;
            let mut found = Vec::new();
            intervals.find(least, most, &mut found);
            found.sort_unstable();
            let overlap = ranges.iter().enumerate().filter(|(_, (low, length, is_removed))| {
                !is_removed && low + length >= least && *low <= most
            });
            prop_assert_eq!(found, overlap.map(|(at, _)| at as u32).collect::<Vec<u32>>());
        }
    }
}
