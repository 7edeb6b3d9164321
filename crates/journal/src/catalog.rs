//! Which segments there are, and what is in them.

use crate::batch::BatchPart;
use crate::error::OpenError;
use crate::index::{Index, Mark};
use crate::recovery::Recovery;
use crate::storage::Storage;
use lanecast_wire::journal::RECORDS_OFFSET;
use std::collections::VecDeque;

/// A segment with records.
#[derive(Debug)]
pub(crate) struct CatalogEntry {
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    /// The first record.
    pub(crate) first: Mark,
    /// Marks of records; `None` until somebody looks for one.
    pub(crate) index: Option<Index>,
}

/// All segments with records, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    entries: VecDeque<CatalogEntry>,
}

impl Catalog {
    /// Reads the first record of each segment; those without are left out, but for a first one
    /// that others follow: whoever reads it is told what is wrong with it.
    pub(crate) fn load<S: Storage>(
        recovery: &mut Recovery<'_, S>,
        segment_numbers: &[u64],
    ) -> Result<Self, OpenError> {
        let mut catalog = Self::default();
        for number in segment_numbers {
            if let Some(entry) = recovery.list(*number)? {
                catalog.entries.push_back(entry);
            }
        }
        if let (Some(number), Some(entry)) = (segment_numbers.first(), catalog.entries.front())
            && *number < entry.number
        {
            let first = Mark { sequence: 1, unix_ns: 0, offset: RECORDS_OFFSET };
            let (number, bytes) = (*number, entry.bytes);
            catalog.entries.push_front(CatalogEntry { number, bytes, first, index: None });
        }
        Ok(catalog)
    }

    /// Leaves out segments whose records are behind `last`: they were torn.
    pub(crate) fn cut(&mut self, last: u64) {
        self.entries.retain(|entry| entry.first.sequence <= last);
    }

    /// Takes note of records that are durable now, in a segment of `bytes` bytes.
    pub(crate) fn note(&mut self, part: &BatchPart, bytes: u64) {
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

    /// The index of a segment was made.
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

    /// The segment that record `sequence` is in, if it is not older than all that is kept.
    pub(crate) fn with_sequence(&self, sequence: u64) -> Option<&CatalogEntry> {
        let count = self.entries.partition_point(|entry| entry.first.sequence <= sequence);
        count.checked_sub(1).map(|place| &self.entries[place])
    }

    /// The segment in which the first record of `unix_ns` or later may be.
    pub(crate) fn with_time(&self, unix_ns: u64) -> Option<&CatalogEntry> {
        let count = self.entries.partition_point(|entry| entry.first.unix_ns < unix_ns);
        self.entries.get(count.saturating_sub(1))
    }

    /// The bytes of all segments with records.
    pub(crate) fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }

    /// The first record of the second-oldest segment: all of the oldest is before it.
    pub(crate) fn second_oldest(&self) -> Option<Mark> {
        self.entries.get(1).map(|entry| entry.first)
    }

    pub(crate) fn remove_oldest(&mut self) {
        self.entries.pop_front();
    }
}
