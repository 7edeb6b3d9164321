//! Heads of the records that a store's log has appended: all that a checkpoint needs of them, so
//! that the checkpointer does not read records back that were just written.
//!
//! The server's thread adds a head with each record, the checkpointer takes those whose records
//! are durable. The bytes of messages are left out, so that memory stays small beside the batch
//! that waits for the disk.

use std::collections::VecDeque;

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

/// Heads of records that follow each other.
#[derive(Debug, Default)]
pub(crate) struct RecordHeads {
    entries: VecDeque<HeadEntry>,
    bytes: Vec<u8>,
    /// Bytes of heads that were taken.
    taken: usize,
}

#[derive(Clone, Copy, Debug)]
struct HeadEntry {
    position: u64,
    unix_ns: u64,
    length: u32,
    bytes: u32,
}

impl RecordHeads {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn add(&mut self, head: RecordHead<'_>) {
        let RecordHead { position, unix_ns, length, bytes } = head;
        self.bytes.extend_from_slice(bytes);
        // The journal has accepted the record, so it is short.
        let (length, bytes) = (length as u32, bytes.len() as u32);
        self.entries.push_back(HeadEntry { position, unix_ns, length, bytes });
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
        let (mut heads, mut next) = (RecordHeads::default(), 1);
        for (added, durable) in [(1..21, 0), (21..41, 5), (41..61, 5), (61..81, 79), (81..81, 80)] {
            added.for_each(|position| heads.add(head(position)));
            while let Some(found) = heads.take(durable) {
                assert_eq!(found, head(next));
                next += 1;
            }
            assert_eq!(next, durable + 1);
            assert_eq!(heads.is_empty(), durable == 80);
        }
        assert!(heads.bytes.is_empty(), "their memory is used again");
    }
}
