//! Finds a cursor's start position: segment, then sparse index, then a scan of at most a stride.

use crate::catalog::Catalog;
use crate::error::{OpenError, ReadError};
use crate::index::Index;
use crate::lock::lock;
use crate::recovery::Recovery;
use crate::segment::segment_numbers;
use crate::storage::Storage;
use lanecast_wire::journal::RecordHeader;
use std::sync::Mutex;

/// Start position of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The oldest record.
    Oldest,
    /// The record with this sequence, which may be the next one to be appended.
    Sequence(u64),
    /// The first record of this time or later, in nanoseconds since 1970.
    Time(u64),
    /// Behind the last record: only records appended from now on.
    End,
}

/// The files of a journal and their catalog.
#[derive(Debug)]
pub(crate) struct Source<S> {
    pub(crate) storage: S,
    pub(crate) catalog: Mutex<Catalog>,
}

/// Segment to search in, with its index.
#[derive(Debug)]
pub(crate) struct StartSegment {
    pub(crate) segment: u64,
    /// Sequence of its first record, present or next to come.
    pub(crate) first: u64,
    /// Index that is in memory; otherwise it is in a file if the segment is complete.
    pub(crate) index: Option<Index>,
    /// Another segment follows.
    pub(crate) is_complete: bool,
}

impl StartSegment {
    pub(crate) fn find<S: Storage>(source: &Source<S>, from: Start) -> Result<Self, ReadError> {
        let catalog = lock(&source.catalog);
        let entry = match from {
            Start::Oldest => catalog.oldest(),
            Start::Sequence(requested) => {
                match (catalog.with_sequence(requested), catalog.oldest()) {
                    (None, Some(oldest)) => {
                        return Err(ReadError::Removed {
                            requested,
                            oldest: oldest.first.sequence,
                        });
                    }
                    (found, _) => found,
                }
            }
            Start::Time(unix_ns) => catalog.with_time(unix_ns),
            Start::End => catalog.newest(),
        };
        if let Some(entry) = entry {
            let (segment, first) = (entry.number, entry.first.sequence);
            let is_complete = catalog.is_followed(segment);
            return Ok(Self { segment, first, index: entry.index.clone(), is_complete });
        }
        // No record yet: start at the oldest file. Listing files happens outside of the lock.
        drop(catalog);
        match segment_numbers(&source.storage)?.first() {
            Some(segment) => {
                Ok(Self { segment: *segment, first: 1, index: None, is_complete: false })
            }
            None => Err(OpenError::NoJournal { directory: source.storage.path("") }.into()),
        }
    }
}

/// Whether the scan stops in front of this record.
pub(crate) fn is_from(header: &RecordHeader, from: Start) -> bool {
    match from {
        Start::Time(unix_ns) => header.unix_ns.get() >= unix_ns,
        Start::Sequence(requested) => header.sequence.get() >= requested,
        Start::Oldest | Start::End => false,
    }
}

/// Sequence of a segment's first record; 0 if it has none.
pub(crate) fn first_of<S: Storage>(source: &Source<S>, number: u64) -> Result<u64, ReadError> {
    let mut recovery = Recovery::new(&source.storage, &[]);
    Ok(recovery.list(number)?.map_or(0, |entry| entry.first.sequence))
}
