//! Messages of one sender that may be asked for again, or wait for their turn, in one ring of
//! bytes.
//!
//! An entry is one copy of a frame's body behind a header of 16 bytes, in whole lines of 64 bytes,
//! never split by the ring's end. Entries lie in order of arrival; a table finds them by sequence.
//! Memory is taken once; pages that the stream never reaches stay untouched.

use core::fmt;
use std::collections::VecDeque;

/// Bytes of a line; an entry begins at one.
const LINE: usize = 64;
/// Entry header: sequence u64, length u32, flags u16, 2 bytes unused.
const HEADER: usize = 16;
/// Length in the header of unused lines before the ring's end.
const SKIP: u32 = u32::MAX;
/// Most lines: a slot holds the line, plus one, in 32 bits.
const MOST_LINES: usize = u32::MAX as usize - 1;

/// A retained frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) sequence: u64,
    pub(crate) flags: u16,
    pub(crate) body: &'a [u8],
}

/// Place of an entry in the order of arrival, or of unused lines before the ring's end.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    sequence: u64,
    lines: u32,
    is_skip: bool,
}

/// Ring of retained frames.
#[derive(Clone, Default)]
pub(crate) struct Retention {
    bytes: Vec<u8>,
    /// All entries, the oldest first: entries are freed long after they left the cache, and their
    /// headers would be a miss each.
    arrivals: VecDeque<Arrival>,
    /// Entries by sequence: its low half, above the line plus one; zero if there is none.
    /// Entries of one ring are less than 2^32 apart.
    slots: Vec<u64>,
    lines: usize,
    /// Line of the oldest entry.
    tail: usize,
    /// Line after the newest entry.
    head: usize,
    used: usize,
}

impl fmt::Debug for Retention {
    /// Sequences and bytes in use: the ring itself is long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.entries().map(|entry| (entry.sequence, entry.body.len())))
            .finish()
    }
}

impl Retention {
    /// Entries in order of arrival.
    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let (mut line, mut left) = (self.tail, self.used);
        core::iter::from_fn(move || {
            while left > 0 {
                let (sequence, length, flags) = self.header(line);
                if length == SKIP {
                    left -= self.lines - line;
                    line = 0;
                    continue;
                }
                let body = &self.bytes[line * LINE + HEADER..][..length as usize];
                let lines = Self::charge(body.len()) / LINE;
                left -= lines;
                line = if line + lines == self.lines { 0 } else { line + lines };
                return Some(Entry { sequence, flags, body });
            }
            None
        })
    }

    /// Bytes that a body of `length` takes.
    #[inline]
    pub(crate) const fn charge(length: usize) -> usize {
        (HEADER + length).next_multiple_of(LINE)
    }

    /// Empties the ring; it has room for `capacity` bytes. Memory is taken with the first entry:
    /// many members never send.
    pub(crate) fn reset(&mut self, capacity: usize) {
        let lines = capacity.div_ceil(LINE).min(MOST_LINES);
        if lines * LINE > self.bytes.len() {
            (self.bytes, self.slots) = (Vec::new(), Vec::new());
        } else if self.used > 0 {
            self.slots.fill(0);
        }
        // A smaller ring uses the beginning of its memory only: less of the cache.
        self.lines = lines;
        self.arrivals.clear();
        (self.tail, self.head, self.used) = (0, 0, 0);
    }

    #[cold]
    fn allocate(&mut self) {
        self.bytes = vec![0; self.lines * LINE];
        self.slots = vec![0; self.lines.next_power_of_two()];
    }

    /// Bytes in use.
    #[inline]
    pub(crate) const fn used(&self) -> usize {
        self.used * LINE
    }

    /// Bytes of the ring.
    #[inline]
    pub(crate) const fn capacity(&self) -> usize {
        self.lines * LINE
    }

    #[inline]
    const fn slot(&self, sequence: u64) -> usize {
        sequence as usize & self.slots.len().wrapping_sub(1)
    }

    /// Line of an entry.
    #[inline]
    fn find(&self, sequence: u64) -> Option<usize> {
        let &slot = self.slots.get(self.slot(sequence))?;
        let here = slot != 0 && (slot >> 32) as u32 == sequence as u32;
        here.then(|| (slot as u32 - 1) as usize)
    }

    /// Whether the frame is there.
    #[inline]
    pub(crate) fn contains(&self, sequence: u64) -> bool {
        self.find(sequence).is_some_and(|line| self.header(line).0 == sequence)
    }

    /// A retained frame.
    #[inline]
    pub(crate) fn get(&self, sequence: u64) -> Option<Entry<'_>> {
        let line = self.find(sequence)?;
        let (stored, length, flags) = self.header(line);
        let body = &self.bytes[line * LINE + HEADER..][..length as usize];
        (stored == sequence).then_some(Entry { sequence, flags, body })
    }

    #[inline]
    fn header(&self, line: usize) -> (u64, u32, u16) {
        let mut header = [0; HEADER];
        header.copy_from_slice(&self.bytes[line * LINE..][..HEADER]);
        let value = u128::from_le_bytes(header);
        (value as u64, (value >> 64) as u32, (value >> 96) as u16)
    }

    #[inline]
    fn write_header(&mut self, line: usize, sequence: u64, length: u32, flags: u16) {
        let value = u128::from(sequence) | u128::from(length) << 64 | u128::from(flags) << 96;
        self.bytes[line * LINE..][..HEADER].copy_from_slice(&value.to_le_bytes());
    }

    /// Whether a body of `length` fits.
    pub(crate) fn has_room(&self, length: usize) -> bool {
        let lines = Self::charge(length) / LINE;
        let to_end = self.lines - self.head;
        self.used + if lines > to_end { to_end } else { 0 } + lines <= self.lines
    }

    /// Copies a frame into the ring. False: no room, or a frame with a sequence too far away is
    /// there.
    #[inline]
    pub(crate) fn insert(&mut self, sequence: u64, flags: u16, body: &[u8]) -> bool {
        if self.slots.is_empty() {
            self.allocate();
        }
        let lines = Self::charge(body.len()) / LINE;
        let to_end = self.lines - self.head;
        // Entries are not split: the lines before the ring's end stay unused.
        let skipped = if lines > to_end { to_end } else { 0 };
        if self.used + skipped + lines > self.lines {
            return false;
        }
        let slot = self.slot(sequence);
        if self.slots[slot] != 0 {
            return false;
        }
        if skipped > 0 {
            self.write_header(self.head, 0, SKIP, 0);
            let lines = skipped as u32;
            self.arrivals.push_back(Arrival { sequence: 0, lines, is_skip: true });
            self.used += skipped;
            self.head = 0;
        }
        let line = self.head;
        self.write_header(line, sequence, body.len() as u32, flags);
        self.bytes[line * LINE + HEADER..][..body.len()].copy_from_slice(body);
        self.slots[slot] = u64::from(sequence as u32) << 32 | (line as u64 + 1);
        self.arrivals.push_back(Arrival { sequence, lines: lines as u32, is_skip: false });
        self.used += lines;
        self.head += lines;
        if self.head == self.lines {
            self.head = 0;
        }
        true
    }

    /// Frees the oldest entries as long as their sequences lie below `sequence`.
    #[inline]
    pub(crate) fn free_below(&mut self, sequence: u64) {
        while let Some(&oldest) = self.arrivals.front() {
            if !oldest.is_skip {
                if oldest.sequence >= sequence {
                    return;
                }
                let slot = self.slot(oldest.sequence);
                self.slots[slot] = 0;
            }
            self.arrivals.pop_front();
            self.used -= oldest.lines as usize;
            self.tail += oldest.lines as usize;
            if self.tail == self.lines {
                self.tail = 0;
            }
        }
        // Empty: begins anew at lines that are still in the cache.
        (self.tail, self.head) = (0, 0);
    }

    /// Keeps the entries from `first` to before `end` only, in their order, if a body of `length`
    /// fits behind them; false, and all stays, if not. Frees what arrived out of order and what it
    /// held up. Takes memory; for the rare case that the expected frame finds no room.
    pub(crate) fn compact(&mut self, first: u64, end: u64, length: usize) -> bool {
        let span = end.saturating_sub(first).min(self.slots.len() as u64);
        let kept = || (end - span..end).filter_map(|sequence| self.get(sequence));
        let bytes: usize = kept().map(|entry| Self::charge(entry.body.len())).sum();
        if bytes + Self::charge(length) > self.capacity() {
            return false;
        }
        let mut compacted = Self::default();
        compacted.reset(self.capacity());
        for entry in kept() {
            compacted.insert(entry.sequence, entry.flags, entry.body);
        }
        *self = compacted;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn ring(capacity: usize) -> Retention {
        let mut ring = Retention::default();
        ring.reset(capacity);
        ring
    }

    #[test]
    fn a_full_ring_refuses_until_the_oldest_entry_is_freed() {
        let mut ring = ring(4 * 64);
        assert!((0..4).all(|sequence| ring.insert(sequence, 3, b"body")));
        assert!(!ring.insert(4, 3, b"body"), "a fifth line of four");
        ring.free_below(1);
        assert!(!ring.contains(0) && ring.contains(1));
        assert!(ring.insert(4, 7, b"new"));
        assert_eq!(ring.get(4), Some(Entry { sequence: 4, flags: 7, body: b"new" }));
    }

    #[test]
    fn compaction_drops_what_lies_ahead_and_what_is_freed() {
        let mut ring = ring(8 * 64);
        for sequence in [5, 9, 8, 6, 2] {
            assert!(ring.insert(sequence, 0, &[sequence as u8]));
        }
        assert!(!ring.compact(5, 7, 7 * 64), "two entries and seven lines");
        assert!(ring.contains(9), "all stays");
        assert!(ring.compact(5, 7, 5 * 64));
        let held = (0..16).filter(|&sequence| ring.contains(sequence)).collect::<Vec<_>>();
        assert_eq!(held, [5, 6]);
        assert_eq!(ring.used(), 2 * 64);
    }

    #[test]
    fn an_unused_ring_holds_nothing() {
        let ring = Retention::default();
        assert!(!ring.contains(0) && ring.get(u64::MAX).is_none());
    }

    proptest! {
        /// Against a list: the same frames are there, and the bytes in use never exceed the ring.
        #[test]
        fn holds_what_a_list_holds(
            steps in prop::collection::vec((0_u64..40, 0_usize..300, any::<bool>()), 1..400),
        ) {
            let mut ring = ring(4096);
            let mut list: VecDeque<(u64, usize)> = VecDeque::new();
            let mut base = 0;
            for (ahead, length, free) in steps {
                if free {
                    base += ahead / 8;
                    ring.free_below(base);
                    while list.front().is_some_and(|&(sequence, _)| sequence < base) {
                        list.pop_front();
                    }
                } else {
                    let sequence = base + ahead;
                    if ring.insert(sequence, ahead as u16, &vec![sequence as u8; length]) {
                        prop_assert!(!list.iter().any(|&(other, _)| other == sequence));
                        list.push_back((sequence, length));
                    }
                }
                let bytes: usize = list.iter().map(|&(_, length)| Retention::charge(length)).sum();
                prop_assert!(bytes <= ring.used() && ring.used() <= 4096);
                for &(sequence, length) in &list {
                    let entry = ring.get(sequence).expect("a frame of the list");
                    prop_assert_eq!(entry.body, &vec![sequence as u8; length][..]);
                }
                let held = (0..base + 64).filter(|&sequence| ring.contains(sequence)).count();
                prop_assert_eq!(held, list.len());
            }
        }
    }
}
