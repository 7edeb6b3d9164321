//! Sorted set in blocks of bounded size, so that an insertion moves at most 128 entries.

/// Largest block; a larger one is split.
const BLOCK_MAX: usize = 128;

/// A sorted set of entries.
#[derive(Clone, Debug)]
pub(crate) struct SortedBlocks<E> {
    /// Non-empty blocks.
    blocks: Vec<Vec<E>>,
    /// First entry of each block, if there are several blocks.
    firsts: Vec<E>,
}

impl<E> Default for SortedBlocks<E> {
    fn default() -> Self {
        Self { blocks: Vec::new(), firsts: Vec::new() }
    }
}

impl<E: Copy + Ord> SortedBlocks<E> {
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(crate) fn insert(&mut self, entry: E) {
        if self.blocks.is_empty() {
            self.blocks.push(Vec::new());
        }
        let at = self.block_of(|other| *other <= entry);
        // Without firsts there is at most one block, and `block_of` returns 0, which exists by now.
        let block = &mut self.blocks[at];
        block.insert(block.partition_point(|other| *other <= entry), entry);
        if block.len() > BLOCK_MAX {
            // Two halves leave room in both; a short tail would split the long half again at once.
            let tail = block.split_off(BLOCK_MAX / 2);
            // One block needs no firsts; the second block brings them.
            if self.firsts.is_empty() {
                self.firsts.push(block[0]);
            }
            self.firsts.insert(at + 1, tail[0]);
            self.blocks.insert(at + 1, tail);
        }
        // An entry below all others becomes the first of its block.
        self.renew_first(at);
    }

    /// Removes `entry` if present.
    pub(crate) fn remove(&mut self, entry: E) {
        let at = self.block_of(|other| *other <= entry);
        let Some(block) = self.blocks.get_mut(at) else { return };
        let Ok(place) = block.binary_search(&entry) else { return };
        block.remove(place);
        if block.is_empty() {
            self.blocks.remove(at);
            // A single block is found without firsts, so they go.
            if self.blocks.len() > 1 {
                self.firsts.remove(at);
            } else {
                self.firsts.clear();
            }
        }
        // If the block is gone, its successor is renewed, which changes nothing.
        self.renew_first(at);
    }

    /// Slices of the entries for which `before` is false, in order. `before` must be monotonic.
    #[inline]
    pub(crate) fn from(&self, before: impl Fn(&E) -> bool) -> impl Iterator<Item = &[E]> {
        let at = self.block_of(&before);
        // Only the first block has entries to skip: `take` leaves 0 for the others.
        let mut skipped = self.blocks.get(at).map_or(0, |block| block.partition_point(&before));
        self.blocks
            .get(at..)
            .unwrap_or_default()
            .iter()
            .map(move |block| &block[std::mem::take(&mut skipped)..])
    }

    /// Slices of the entries for which `within` is true, in order. `within` must be monotonic.
    #[inline]
    pub(crate) fn to(&self, within: impl Fn(&E) -> bool + Copy) -> impl Iterator<Item = &[E]> {
        let at = self.block_of(within);
        self.blocks.iter().take(at + 1).enumerate().map(move |(number, block)| {
            // All blocks before the last one are entirely within.
            let end = if number < at { block.len() } else { block.partition_point(within) };
            &block[..end]
        })
    }

    /// The last block whose first entry is `before`, or the first block.
    #[inline]
    fn block_of(&self, before: impl Fn(&E) -> bool) -> usize {
        self.firsts.partition_point(before).saturating_sub(1)
    }

    /// Updates the first entry of the block at `at`.
    fn renew_first(&mut self, at: usize) {
        if let (Some(first), Some(block)) = (self.firsts.get_mut(at), self.blocks.get(at)) {
            *first = block[0];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SortedBlocks;
    use proptest::prelude::*;

    #[test]
    fn blocks_are_cut_and_go() {
        let mut sorted = SortedBlocks::default();
        for entry in (0..5_000_u32).rev() {
            sorted.insert(entry);
        }
        assert!(sorted.blocks.len() > 5 && sorted.firsts.len() == sorted.blocks.len());
        assert_eq!(sorted.from(|entry| *entry < 4_000).flatten().count(), 1_000);
        assert_eq!(sorted.to(|entry| *entry < 4_000).flatten().count(), 4_000);
        for entry in 0..5_000 {
            assert_eq!(sorted.from(|_| false).flatten().next(), Some(&entry));
            sorted.remove(entry);
        }
        assert!(sorted.is_empty());
    }

    proptest! {
        #[test]
        fn sorted_blocks_equal_a_sorted_list(
            changes in prop::collection::vec((0..300_u32, prop::bool::weighted(0.7)), 0..2_000),
            limit in 0..300_u32,
        ) {
            let (mut sorted, mut model) = (SortedBlocks::default(), Vec::new());
            for (entry, is_insert) in changes {
                if is_insert {
                    sorted.insert(entry);
                    model.push(entry);
                } else {
                    sorted.remove(entry);
                    if let Some(at) = model.iter().position(|other| *other == entry) {
                        model.swap_remove(at);
                    }
                }
            }
            model.sort_unstable();
            let below = model.partition_point(|entry| *entry < limit);
            let to: Vec<u32> = sorted.to(|entry| *entry < limit).flatten().copied().collect();
            prop_assert_eq!(&to, &model[..below]);
            let from: Vec<u32> = sorted.from(|entry| *entry < limit).flatten().copied().collect();
            prop_assert_eq!(&from, &model[below..]);
        }
    }
}
