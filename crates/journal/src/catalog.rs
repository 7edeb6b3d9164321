//! The segments that hold records, oldest first. Shared by the writer, retention and cursors behind
//! a mutex.

use crate::batch::BatchPart;
use crate::index::{Index, Mark};
use lanecast_wire::journal::RECORDS_OFFSET;
use std::collections::VecDeque;

/// A segment that holds records.
#[derive(Debug)]
pub(crate) struct CatalogEntry {
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    /// The first record.
    pub(crate) first: Mark,
    /// Sparse index of its records while it is in memory only: of the newest segment, and of others
    /// until it is written to its file.
    pub(crate) index: Option<Index>,
}

/// Segments that hold records, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    entries: VecDeque<CatalogEntry>,
}

impl Catalog {
    /// Lists `entries`, read from the segments with these numbers. An unreadable first segment is
    /// listed all the same if others follow: reading it reports the damage.
    pub(crate) fn new(segment_numbers: &[u64], mut entries: VecDeque<CatalogEntry>) -> Self {
        if let (Some(number), Some(entry)) = (segment_numbers.first(), entries.front())
            && *number < entry.number
        {
            let first = Mark { sequence: 1, unix_ns: 0, offset: RECORDS_OFFSET };
            let (number, bytes) = (*number, entry.bytes);
            entries.push_front(CatalogEntry { number, bytes, first, index: None });
        }
        Self { entries }
    }

    /// Drops segments whose first record is behind `last`: recovery has cut them off.
    pub(crate) fn cut(&mut self, last: u64) {
        self.entries.retain(|entry| entry.first.sequence <= last);
    }

    /// Adds a durable batch part, written to a segment of `bytes` bytes.
    pub(crate) fn add(&mut self, part: &BatchPart, bytes: u64) {
        let number = part.segment;
        if let Some(first) = part.first {
            self.entries.push_back(CatalogEntry {
                number,
                bytes,
                first,
                index: Some(Index::default()),
            });
        }
        let entry = self.entries.iter_mut().rev().find(|entry| entry.number == number);
        if let Some(known) = entry.and_then(|entry| entry.index.as_mut()) {
            known.extend(&part.index);
        }
    }

    /// Number and index file of a complete segment whose index is in memory only.
    pub(crate) fn unwritten(&self, journal: u64) -> Option<(u64, Vec<u8>)> {
        let followed = self.entries.iter().zip(self.entries.iter().skip(1));
        followed.into_iter().find_map(|(entry, next)| {
            let index = entry.index.as_ref()?;
            Some((entry.number, index.encode(journal, entry.number, next.first.sequence)?))
        })
    }

    /// Drops a segment's index, which is in its file.
    pub(crate) fn drop_index(&mut self, number: u64) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.number == number) {
            entry.index = None;
        }
    }

    /// Whether another segment follows the one with this number.
    pub(crate) fn is_followed(&self, number: u64) -> bool {
        self.newest().is_some_and(|newest| newest.number > number)
    }

    /// Stores the index that a cursor has built for a segment.
    pub(crate) fn set_index(&mut self, number: u64, index: Index) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.number == number) {
            entry.index.get_or_insert(index);
        }
    }

    pub(crate) fn oldest(&self) -> Option<&CatalogEntry> {
        self.entries.front()
    }

    pub(crate) fn newest(&self) -> Option<&CatalogEntry> {
        self.entries.back()
    }

    /// The segment that holds record `sequence`; `None` if the record is older than all segments.
    pub(crate) fn with_sequence(&self, sequence: u64) -> Option<&CatalogEntry> {
        let count = self.entries.partition_point(|entry| entry.first.sequence <= sequence);
        count.checked_sub(1).map(|place| &self.entries[place])
    }

    /// The segment that may hold the first record of `unix_ns` or later.
    pub(crate) fn with_time(&self, unix_ns: u64) -> Option<&CatalogEntry> {
        // The record may be in the last segment that begins before `unix_ns`.
        let count = self.entries.partition_point(|entry| entry.first.unix_ns < unix_ns);
        self.entries.get(count.saturating_sub(1))
    }

    /// Total length of the segments, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }

    /// The first record of the second-oldest segment, just behind the oldest segment's last one.
    pub(crate) fn second_oldest(&self) -> Option<Mark> {
        self.entries.get(1).map(|entry| entry.first)
    }

    pub(crate) fn take_oldest(&mut self) -> Option<CatalogEntry> {
        self.entries.pop_front()
    }

    /// Puts back the oldest segment, which could not be removed.
    pub(crate) fn put_back(&mut self, oldest: CatalogEntry) {
        self.entries.push_front(oldest);
    }
}
