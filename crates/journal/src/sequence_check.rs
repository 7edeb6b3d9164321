//! Sequence and checksum continuity between consecutive records.

use crate::error::CorruptionKind;
use lanecast_wire::journal::{KIND_ENTRY, RecordHeader};

/// Expected properties of the next record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SequenceCheck {
    /// Expected sequence; `None` in the middle of a journal, before the first record was read.
    pub(crate) next: Option<u64>,
    /// Header checksum of the record before it; `None` if unknown.
    pub(crate) previous: Option<u32>,
    /// Time of the record before it.
    pub(crate) unix_ns: u64,
}

impl SequenceCheck {
    /// The first record of a journal.
    pub(crate) const START: Self = Self { next: Some(1), previous: Some(0), unix_ns: 0 };
    /// Any record: nothing is known yet.
    pub(crate) const ANYWHERE: Self = Self { next: None, previous: None, unix_ns: 0 };

    /// The expectation at the start of segment `number`, without reading the segments before it.
    pub(crate) const fn at_segment(number: u64) -> Self {
        if number == 1 { Self::START } else { Self::ANYWHERE }
    }

    /// Checks that `header` is the next record.
    #[inline]
    pub(crate) fn check(&self, header: &RecordHeader) -> Result<(), CorruptionKind> {
        let found = header.sequence.get();
        if let Some(expected) = self.next
            && expected != found
        {
            return Err(CorruptionKind::OutOfSequence { expected, found });
        }
        // The previous record's checksum tells apart two histories that reuse the same sequence,
        // after a cut.
        let follows = self.previous.is_none_or(|previous| previous == header.previous.get());
        // Cursors search by time, which needs times in order.
        let in_time = header.unix_ns.get() >= self.unix_ns;
        if follows && in_time { Ok(()) } else { Err(CorruptionKind::BrokenChain) }
    }

    /// Advances behind the record `header`.
    #[inline]
    pub(crate) fn advance(&mut self, header: &RecordHeader) {
        // A seal has the sequence of the next entry and does not use it up.
        let is_entry = header.kind.get() == KIND_ENTRY;
        self.next = Some(header.sequence.get() + u64::from(is_entry));
        self.previous = Some(header.crc.get());
        self.unix_ns = header.unix_ns.get();
    }

    /// The sequence of the last record; 0 if there is none.
    pub(crate) fn last(&self) -> u64 {
        self.next.map_or(0, |next| next - 1)
    }
}
