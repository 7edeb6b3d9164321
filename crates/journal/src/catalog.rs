//! Which segments there are, and what is in them.

use crate::error::OpenError;
use crate::group::Piece;
use crate::index::{Index, Mark};
use crate::recovery::Recovery;
use crate::storage::Storage;
use lanecast_wire::journal::RECORDS_OFFSET;
use std::collections::VecDeque;

/// A segment with records.
#[derive(Debug)]
pub(crate) struct Listed {
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
    listed: VecDeque<Listed>,
}

impl Catalog {
    /// Reads the first record of each segment; those without are left out, but for a first one
    /// that others follow: whoever reads it is told what is wrong with it.
    pub(crate) fn load<S: Storage>(
        recovery: &mut Recovery<'_, S>,
        numbers: &[u64],
    ) -> Result<Self, OpenError> {
        let mut catalog = Self::default();
        for number in numbers {
            if let Some(listed) = recovery.list(*number)? {
                catalog.listed.push_back(listed);
            }
        }
        if let (Some(number), Some(listed)) = (numbers.first(), catalog.listed.front())
            && *number < listed.number
        {
            let first = Mark { sequence: 1, unix_ns: 0, offset: RECORDS_OFFSET };
            let (number, bytes) = (*number, listed.bytes);
            catalog.listed.push_front(Listed { number, bytes, first, index: None });
        }
        Ok(catalog)
    }

    /// Leaves out segments whose records are behind `last`: they were torn.
    pub(crate) fn cut(&mut self, last: u64) {
        self.listed.retain(|listed| listed.first.sequence <= last);
    }

    /// Takes note of records that are durable now, in a segment of `bytes` bytes.
    pub(crate) fn note(&mut self, piece: &Piece, bytes: u64) {
        let number = piece.segment;
        if let Some(first) = piece.first {
            self.listed.push_back(Listed { number, bytes, first, index: Some(Index::default()) });
        }
        let listed = self.listed.iter_mut().rev().find(|listed| listed.number == number);
        if let Some(known) = listed.and_then(|listed| listed.index.as_mut()) {
            known.extend(&piece.index);
        }
    }

    /// The index of a segment was made.
    pub(crate) fn learn(&mut self, number: u64, index: Index) {
        if let Some(listed) = self.listed.iter_mut().find(|listed| listed.number == number) {
            listed.index.get_or_insert(index);
        }
    }

    pub(crate) fn oldest(&self) -> Option<&Listed> {
        self.listed.front()
    }

    pub(crate) fn newest(&self) -> Option<&Listed> {
        self.listed.back()
    }

    /// The segment that record `sequence` is in, if it is not older than all that is kept.
    pub(crate) fn with_sequence(&self, sequence: u64) -> Option<&Listed> {
        let count = self.listed.partition_point(|listed| listed.first.sequence <= sequence);
        count.checked_sub(1).map(|place| &self.listed[place])
    }

    /// The segment in which the first record of `unix_ns` or later may be.
    pub(crate) fn with_time(&self, unix_ns: u64) -> Option<&Listed> {
        let count = self.listed.partition_point(|listed| listed.first.unix_ns < unix_ns);
        self.listed.get(count.saturating_sub(1))
    }

    /// The bytes of all segments with records.
    pub(crate) fn bytes(&self) -> u64 {
        self.listed.iter().map(|listed| listed.bytes).sum()
    }

    /// The first record of the second-oldest segment: all of the oldest is before it.
    pub(crate) fn behind_oldest(&self) -> Option<Mark> {
        self.listed.get(1).map(|listed| listed.first)
    }

    pub(crate) fn forget_oldest(&mut self) {
        self.listed.pop_front();
    }
}
