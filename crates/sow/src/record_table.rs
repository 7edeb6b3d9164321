//! Hash table of records by checksum.
//!
//! In a topic of a million records nothing is in a cache, so the number of cache misses per lookup
//! decides: two here, one for the slot and one for the record. Slots are ordered by hash, so
//! growing reads and writes memory sequentially.
//!
//! Publishers can choose keys and compute their checksums; the table hashes checksums with a random
//! seed, so they cannot choose the slots. The fast variant of the hash leaves patterns of chosen
//! checksums visible in its high bits for about one seed in a hundred; the quality variant does
//! not.

use crate::record::Record;
use foldhash::quality::RandomState;
use std::hash::BuildHasher;

/// Slots of the smallest table.
const SLOTS_MIN: usize = 16;

/// A record, its row and its hash: enough to move it without touching the record.
#[derive(Clone, Debug)]
struct Slot {
    record: Record,
    row_id: u32,
    hash: u32,
}

/// Hash table of records by checksum.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordTable {
    /// Empty, or a power of two in length.
    slots: Vec<Option<Slot>>,
    len: usize,
    hashing: RandomState,
}

impl RecordTable {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Reserves space for `more` records.
    pub(crate) fn reserve(&mut self, more: usize) {
        // A third stays empty, which keeps probe sequences short.
        let wanted = (self.len + more).saturating_mul(3).div_ceil(2);
        if wanted <= self.slots.len() {
            return;
        }
        let slots = vec![None; wanted.next_power_of_two().max(SLOTS_MIN)];
        for slot in std::mem::replace(&mut self.slots, slots).into_iter().flatten() {
            self.insert_slot(slot);
        }
    }

    /// Row of the record with this checksum that satisfies `is_it`.
    #[inline]
    pub(crate) fn find(&self, checksum: u64, is_it: impl Fn(&Record) -> bool) -> Option<u32> {
        let at = self.look_up(checksum, |slot| is_it(&slot.record))?;
        self.slots[at].as_ref().map(|slot| slot.row_id)
    }

    /// Inserts a record that is not in the table.
    pub(crate) fn insert(&mut self, checksum: u64, row_id: u32, record: Record) {
        self.reserve(1);
        self.len += 1;
        self.insert_slot(Slot { record, row_id, hash: self.hash(checksum) });
    }

    /// Replaces the record of `row_id`, which has this checksum.
    #[inline]
    pub(crate) fn replace(&mut self, checksum: u64, row_id: u32, record: Record) {
        if let Some(at) = self.look_up(checksum, |slot| slot.row_id == row_id)
            && let Some(slot) = &mut self.slots[at]
        {
            slot.record = record;
        }
    }

    /// Removes the record of `row_id`, which has this checksum.
    pub(crate) fn remove(&mut self, checksum: u64, row_id: u32) {
        let Some(mut hole) = self.look_up(checksum, |slot| slot.row_id == row_id) else { return };
        self.slots[hole] = None;
        self.len -= 1;
        // Backward-shift deletion: a later entry moves into the hole if its probe sequence passes
        // it.
        let mask = self.slots.len() - 1;
        let mut at = (hole + 1) & mask;
        while let Some(slot) = &self.slots[at] {
            let from_home = at.wrapping_sub(self.home(slot.hash)) & mask;
            if from_home >= (at.wrapping_sub(hole) & mask) {
                self.slots.swap(hole, at);
                hole = at;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline(always)]
    fn look_up(&self, checksum: u64, is_it: impl Fn(&Slot) -> bool) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let (hash, mask) = (self.hash(checksum), self.slots.len() - 1);
        let mut at = self.home(hash);
        while let Some(slot) = &self.slots[at] {
            if slot.hash == hash && is_it(slot) {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Puts `slot` into the first free slot from its home on. The load limit guarantees one.
    fn insert_slot(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = self.home(slot.hash);
        while self.slots[at].is_some() {
            at = (at + 1) & mask;
        }
        self.slots[at] = Some(slot);
    }

    #[inline(always)]
    fn hash(&self, checksum: u64) -> u32 {
        (self.hashing.hash_one(checksum) >> 32) as u32
    }

    /// Home slot: the highest bits of the hash.
    #[inline(always)]
    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) << 32) >> (64 - self.slots.len().trailing_zeros())) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Identity, Key};
    use crate::record::{Header, NEVER};
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn record(checksum: u64, sequence: u64) -> Record {
        let identity = Identity { checksum, proof: 0 };
        Record::new(Header::new(identity, Key(checksum), sequence, NEVER), b"", "")
    }

    proptest! {
        #[test]
        fn a_table_is_a_map(steps in prop::collection::vec((0..400u64, 0..3u8), 1..600)) {
            let (mut table, mut map) = (RecordTable::default(), HashMap::new());
            for (sequence, (number, step)) in (0..).zip(steps) {
                // Few checksums, so that many records collide.
                let (checksum, row_id) = (number % 60, number as u32);
                let is_there = map.contains_key(&row_id);
                match step {
                    0 if is_there => {
                        table.remove(checksum, row_id);
                        map.remove(&row_id);
                    }
                    _ if is_there => {
                        table.replace(checksum, row_id, record(checksum, sequence));
                        map.insert(row_id, (checksum, sequence));
                    }
                    _ => {
                        table.insert(checksum, row_id, record(checksum, sequence));
                        map.insert(row_id, (checksum, sequence));
                    }
                }
                prop_assert_eq!(table.len(), map.len());
            }
            for (row_id, (checksum, sequence)) in &map {
                let found = table.find(*checksum, |record| record.sequence() == *sequence);
                prop_assert_eq!(found, Some(*row_id));
            }
            prop_assert_eq!(table.slots.iter().flatten().count(), map.len());
            prop_assert_eq!(table.find(7, |record| record.sequence() == u64::MAX), None);
        }
    }

    #[test]
    fn chosen_checksums_do_not_crowd_one_home() {
        for chosen in [|number: u64| number << 32, |number| number, |number| number << 48] {
            let mut table = RecordTable::default();
            (0..10_000)
                .for_each(|row_id| table.insert(chosen(row_id), row_id as u32, record(0, 0)));
            let runs = table.slots.split(Option::is_none).map(<[_]>::len);
            assert!(runs.max() < Some(1_000), "a third of the slots is free, all over the table");
        }
    }

    #[test]
    fn room_that_was_made_is_enough() {
        let mut table = RecordTable::default();
        assert_eq!(table.find(0, |_| true), None);
        table.remove(0, 0);
        table.reserve(1_000);
        let slots = table.slots.len();
        (0..1_000).for_each(|row_id| table.insert(u64::from(row_id) << 20, row_id, record(0, 0)));
        assert_eq!((table.slots.len(), table.len()), (slots, 1_000));
        assert_eq!(size_of::<Option<Slot>>(), 16);
    }
}
