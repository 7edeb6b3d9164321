//! Records by checksum.
//!
//! Open addressing with linear probing: in a topic of a million records nothing is in a cache, so
//! what counts is how often a look waits for memory. It does so twice, for a seat and for the
//! record, and never for a control byte or a place between the two. Seats are ordered by hash, so a
//! table that grows is read and written from one end to the other.
//!
//! Whoever publishes can compute checksums, and so choose keys: what is home to them, he cannot.

use crate::record::Record;
use foldhash::fast::RandomState;
use std::hash::BuildHasher;

/// Seats of the smallest table.
const SEATS_MIN: usize = 16;

/// A record, where it is, and its hash: enough to move it without looking at it.
#[derive(Clone, Debug)]
struct Seat {
    record: Record,
    place: u32,
    hash: u32,
}

/// Records by checksum.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// None, or a power of two of them.
    seats: Vec<Option<Seat>>,
    len: usize,
    hashing: RandomState,
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Makes room for so many more.
    pub(crate) fn reserve(&mut self, more: usize) {
        // A third stays empty, so that runs of seats that are taken stay short.
        let wanted = (self.len + more).saturating_mul(3).div_ceil(2);
        if wanted <= self.seats.len() {
            return;
        }
        let seats = vec![None; wanted.next_power_of_two().max(SEATS_MIN)];
        for seat in std::mem::replace(&mut self.seats, seats).into_iter().flatten() {
            self.seat(seat);
        }
    }

    /// Where the record with this checksum is that `is_it`.
    #[inline]
    pub(crate) fn find(&self, checksum: u64, is_it: impl Fn(&Record) -> bool) -> Option<u32> {
        let at = self.look_up(checksum, |seat| is_it(&seat.record))?;
        self.seats[at].as_ref().map(|seat| seat.place)
    }

    /// Adds a record that is not there.
    pub(crate) fn insert(&mut self, checksum: u64, place: u32, record: Record) {
        self.reserve(1);
        self.len += 1;
        self.seat(Seat { record, place, hash: self.hash(checksum) });
    }

    /// Puts another version of the record at `place`, which has this checksum, in its seat.
    #[inline]
    pub(crate) fn replace(&mut self, checksum: u64, place: u32, record: Record) {
        if let Some(at) = self.look_up(checksum, |seat| seat.place == place)
            && let Some(seat) = &mut self.seats[at]
        {
            seat.record = record;
        }
    }

    /// Removes the record at `place`, which has this checksum.
    pub(crate) fn remove(&mut self, checksum: u64, place: u32) {
        let Some(mut hole) = self.look_up(checksum, |seat| seat.place == place) else { return };
        self.seats[hole] = None;
        self.len -= 1;
        // Who would not be found behind the hole moves into it.
        let mask = self.seats.len() - 1;
        let mut at = (hole + 1) & mask;
        while let Some(seat) = &self.seats[at] {
            let from_home = at.wrapping_sub(self.home(seat.hash)) & mask;
            if from_home >= (at.wrapping_sub(hole) & mask) {
                self.seats.swap(hole, at);
                hole = at;
            }
            at = (at + 1) & mask;
        }
    }

    #[inline(always)]
    fn look_up(&self, checksum: u64, is_it: impl Fn(&Seat) -> bool) -> Option<usize> {
        if self.seats.is_empty() {
            return None;
        }
        let (hash, mask) = (self.hash(checksum), self.seats.len() - 1);
        let mut at = self.home(hash);
        while let Some(seat) = &self.seats[at] {
            if seat.hash == hash && is_it(seat) {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Puts `seat` where the first is free from its home on; one is.
    fn seat(&mut self, seat: Seat) {
        let mask = self.seats.len() - 1;
        let mut at = self.home(seat.hash);
        while self.seats[at].is_some() {
            at = (at + 1) & mask;
        }
        self.seats[at] = Some(seat);
    }

    #[inline(always)]
    fn hash(&self, checksum: u64) -> u32 {
        (self.hashing.hash_one(checksum) >> 32) as u32
    }

    /// Where the search for a record begins: the highest bits of its hash.
    #[inline(always)]
    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) << 32) >> (64 - self.seats.len().trailing_zeros())) as usize
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
            let (mut table, mut map) = (Table::default(), HashMap::new());
            for (sequence, (number, step)) in (0..).zip(steps) {
                // Few checksums, so that many records have the same.
                let (checksum, place) = (number % 60, number as u32);
                let is_there = map.contains_key(&place);
                match step {
                    0 if is_there => {
                        table.remove(checksum, place);
                        map.remove(&place);
                    }
                    _ if is_there => {
                        table.replace(checksum, place, record(checksum, sequence));
                        map.insert(place, (checksum, sequence));
                    }
                    _ => {
                        table.insert(checksum, place, record(checksum, sequence));
                        map.insert(place, (checksum, sequence));
                    }
                }
                prop_assert_eq!(table.len(), map.len());
            }
            for (place, (checksum, sequence)) in &map {
                let found = table.find(*checksum, |record| record.sequence() == *sequence);
                prop_assert_eq!(found, Some(*place));
            }
            prop_assert_eq!(table.seats.iter().flatten().count(), map.len());
            prop_assert_eq!(table.find(7, |record| record.sequence() == u64::MAX), None);
        }
    }

    #[test]
    fn chosen_checksums_do_not_crowd_one_home() {
        for chosen in [|number: u64| number << 32, |number| number, |number| number << 48] {
            let mut table = Table::default();
            (0..10_000).for_each(|place| table.insert(chosen(place), place as u32, record(0, 0)));
            let runs = table.seats.split(Option::is_none).map(<[_]>::len);
            assert!(runs.max() < Some(1_000), "a third of the seats is free, all over the table");
        }
    }

    #[test]
    fn room_that_was_made_is_enough() {
        let mut table = Table::default();
        assert_eq!(table.find(0, |_| true), None);
        table.remove(0, 0);
        table.reserve(1_000);
        let seats = table.seats.len();
        (0..1_000).for_each(|place| table.insert(u64::from(place) << 20, place, record(0, 0)));
        assert_eq!((table.seats.len(), table.len()), (seats, 1_000));
        assert_eq!(size_of::<Option<Seat>>(), 16);
    }
}
