//! Slots of a receiver's topics by their numbers in the session.
//!
//! Numbers come from the network. Those that a session gives to topics in turn index a table; any
//! other takes an entry of a map, so that one high number costs no table up to it.

use std::collections::HashMap;

/// Limit of topic numbers: a session has no more topics.
const NUMBER_MAX: u32 = 1 << 16;
/// Length of the table: this many entries, or so many for each topic in it.
const TABLE_MIN: usize = 1_024;
const TABLE_PER_TOPIC: usize = 8;
/// Entry of the table: not subscribed.
const NO_SLOT: u32 = u32::MAX;

/// Slots by number.
#[derive(Debug, Default)]
pub(super) struct Slots {
    table: Vec<u32>,
    /// Slots of numbers that were beyond the table when they were added.
    others: HashMap<u32, u32>,
    count: usize,
}

impl Slots {
    /// Number of topics.
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<u32> {
        match self.table.get(number as usize) {
            Some(slot) if *slot != NO_SLOT => Some(*slot),
            _ if self.others.is_empty() => None,
            _ => self.others.get(&number).copied(),
        }
    }

    /// Adds a number; returns false if it is too high, or another topic has it.
    pub(super) fn add(&mut self, number: u32, slot: u32) -> bool {
        if number >= NUMBER_MAX || self.get(number).is_some() {
            return false;
        }
        let at = number as usize;
        self.count += 1;
        if at < TABLE_MIN.max(TABLE_PER_TOPIC * self.count) {
            let length = self.table.len().max(at + 1);
            self.table.resize(length, NO_SLOT);
            self.table[at] = slot;
        } else {
            self.others.insert(number, slot);
        }
        true
    }

    pub(super) fn remove(&mut self, number: u32) {
        let slot = self.table.get_mut(number as usize).filter(|slot| **slot != NO_SLOT);
        let removed = match slot {
            Some(slot) => {
                *slot = NO_SLOT;
                true
            }
            None => self.others.remove(&number).is_some(),
        };
        self.count -= usize::from(removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_turn_are_in_the_table() {
        let mut slots = Slots::default();
        for number in 0..NUMBER_MAX {
            assert!(slots.add(number, number + 7), "{number}");
        }
        assert_eq!((slots.others.len(), slots.len()), (0, NUMBER_MAX as usize));
        assert!((0..NUMBER_MAX).all(|number| slots.get(number) == Some(number + 7)));
        assert!(!slots.add(NUMBER_MAX, 7) && slots.get(NUMBER_MAX).is_none());
    }

    #[test]
    fn a_high_number_takes_one_entry() {
        let mut slots = Slots::default();
        let high = NUMBER_MAX - 1;
        assert!(slots.add(high, 3) && !slots.add(high, 4));
        assert_eq!((slots.table.capacity(), slots.get(high), slots.get(0)), (0, Some(3), None));
        // Found where it is, although the table has grown over it meanwhile.
        (0..high).for_each(|number| assert!(slots.add(number, number)));
        assert_eq!((slots.others.len(), slots.get(high)), (1, Some(3)));
        assert!((0..high).all(|number| slots.get(number) == Some(number)));
        for number in [high, 9] {
            slots.remove(number);
            slots.remove(number);
            assert_eq!(slots.get(number), None);
        }
        assert_eq!(slots.len(), high as usize - 1);
        assert!(slots.add(high, 5) && slots.get(high) == Some(5));
    }
}
