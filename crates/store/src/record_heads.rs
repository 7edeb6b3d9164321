//! Heads of the records that a store's log has appended: all that a checkpoint needs of them, so
//! that the checkpointer does not read new records back.
//!
//! The server's thread adds a head with each record, the checkpointer takes those whose records
//! are durable. The bytes of messages are left out, so that memory stays small beside the batch
//! that waits for the disk; while the checkpointer writes, heads that find no room are left out as
//! well, and their records are read back from the journal.

use lanecast_journal::Record;
use std::collections::VecDeque;
use std::ops::Range;

/// Head of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHead<'a> {
    /// Sequence of the record in the journal.
    pub(crate) position: u64,
    /// Time of the record, in nanoseconds since 1970.
    pub(crate) unix_ns: u64,
    /// Bytes of the whole record.
    pub(crate) length: usize,
    /// The record; the bytes of its message may be missing.
    pub(crate) bytes: &'a [u8],
}

impl<'a> RecordHead<'a> {
    /// Head of a record that was read.
    pub(crate) const fn of(record: &Record<'a>) -> Self {
        let Record { sequence: position, unix_ns, body: bytes, .. } = *record;
        Self { position, unix_ns, length: bytes.len(), bytes }
    }
}

/// Heads of records that follow each other, in bounded memory.
#[derive(Debug)]
pub(crate) struct RecordHeads {
    entries: VecDeque<HeadEntry>,
    bytes: Vec<u8>,
    /// Bytes of heads that were taken.
    taken: usize,
    /// Most bytes of heads, taken ones included.
    bytes_max: usize,
    /// Positions of the records behind the last head that found no room. Until they are read back
    /// no head is added: it would come in front of them.
    left_out: Range<u64>,
}

#[derive(Clone, Copy, Debug)]
struct HeadEntry {
    position: u64,
    unix_ns: u64,
    length: u32,
    bytes: u32,
}

impl RecordHeads {
    /// No heads, and room for so many bytes of them.
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self { entries: VecDeque::new(), bytes: Vec::new(), taken: 0, bytes_max, left_out: 0..0 }
    }

    /// Whether nothing is to be taken, nor to be read back.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.left_out.is_empty()
    }

    /// Adds the head of the next record, if there is room for it; returns whether there was.
    pub(crate) fn add(&mut self, head: RecordHead<'_>) -> bool {
        let RecordHead { position, unix_ns, length, bytes } = head;
        let entries = (self.entries.len() + 1) * size_of::<HeadEntry>();
        if !self.left_out.is_empty() {
            self.left_out.end = position + 1;
            return false;
        }
        if entries + self.bytes.len() + bytes.len() > self.bytes_max {
            self.left_out = position..position + 1;
            return false;
        }
        self.bytes.extend_from_slice(bytes);
        // The journal has accepted the record, so it is short.
        let (length, bytes) = (length as u32, bytes.len() as u32);
        self.entries.push_back(HeadEntry { position, unix_ns, length, bytes });
        true
    }

    /// Positions of the records to read back, once all heads in front of them were taken.
    pub(crate) fn left_out(&self) -> Option<Range<u64>> {
        let is_next = self.entries.is_empty() && !self.left_out.is_empty();
        is_next.then(|| self.left_out.clone())
    }

    /// The record at `position` was read back.
    pub(crate) const fn on_read_back(&mut self, position: u64) {
        self.left_out.start = position + 1;
    }

    /// Takes the next head, if its record stands at `end` or before it.
    pub(crate) fn take(&mut self, end: u64) -> Option<RecordHead<'_>> {
        if self.entries.is_empty() {
            self.bytes.clear();
            self.taken = 0;
        }
        let entry = self.entries.front().filter(|entry| entry.position <= end)?;
        let HeadEntry { position, unix_ns, length, bytes } = *entry;
        self.entries.pop_front();
        let start = self.taken;
        self.taken += bytes as usize;
        let bytes = &self.bytes[start..self.taken];
        Some(RecordHead { position, unix_ns, length: length as usize, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_taken_in_order_when_their_records_are_durable() {
        let bytes: Vec<u8> = (0..7).collect();
        let head = |position: u64| RecordHead {
            position,
            unix_ns: 10 * position,
            length: 1_000,
            bytes: &bytes[..position as usize % 7],
        };
        let (mut heads, mut next) = (RecordHeads::new(usize::MAX), 1);
        for (added, durable) in [(1..21, 0), (21..41, 5), (41..61, 5), (61..81, 79), (81..81, 80)] {
            added.for_each(|position| assert!(heads.add(head(position))));
            while let Some(found) = heads.take(durable) {
                assert_eq!(found, head(next));
                next += 1;
            }
            assert_eq!(next, durable + 1);
            assert_eq!(heads.is_empty(), durable == 80);
        }
        assert!(heads.bytes.is_empty(), "their memory is used again");
    }
    #[test]
    fn heads_without_room_are_left_out_until_their_records_are_read_back() {
        let head =
            |position| RecordHead { position, unix_ns: 0, length: 100, bytes: b"thirteen byte" };
        let mut heads = RecordHeads::new(10 * (size_of::<HeadEntry>() + 13));
        for position in 1..100_000 {
            assert_eq!(heads.add(head(position)), position <= 10);
        }
        assert!(heads.entries.len() == 10 && heads.bytes.len() == 130, "{heads:?}");
        assert_eq!(heads.left_out(), None, "those in front of them come first");
        (1..=10).for_each(|position| assert_eq!(heads.take(20), Some(head(position))));
        assert_eq!(heads.take(20), None);
        assert_eq!(heads.left_out(), Some(11..100_000));
        (11..99_999).for_each(|position| heads.on_read_back(position));
        assert!(!heads.is_empty() && !heads.add(head(100_000)));
        (99_999..=100_000).for_each(|position| heads.on_read_back(position));
        assert!(heads.is_empty() && heads.left_out().is_none());
        assert!(heads.add(head(100_001)));
        assert_eq!(heads.take(100_001), Some(head(100_001)));
    }
}
