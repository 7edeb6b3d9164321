//! How records follow one another.

use crate::error::CorruptionKind;
use lanecast_wire::journal::{KIND_ENTRY, RecordHeader};

/// What the next record must be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SequenceCheck {
    /// Its sequence, unless older segments were removed and nobody knows.
    pub(crate) next: Option<u64>,
    /// The checksum of the one before.
    pub(crate) previous: Option<u32>,
    /// When the one before was appended.
    pub(crate) unix_ns: u64,
}

impl SequenceCheck {
    /// At the very beginning of a journal.
    pub(crate) const START: Self = Self { next: Some(1), previous: Some(0), unix_ns: 0 };
    /// In the middle, where nothing is known yet.
    pub(crate) const ANYWHERE: Self = Self { next: None, previous: None, unix_ns: 0 };

    /// What is known at the first record of segment `number` without reading those before it.
    pub(crate) const fn at_segment(number: u64) -> Self {
        if number == 1 { Self::START } else { Self::ANYWHERE }
    }

    /// Whether a record is the next one.
    #[inline]
    pub(crate) fn check(&self, header: &RecordHeader) -> Result<(), CorruptionKind> {
        let found = header.sequence.get();
        if let Some(expected) = self.next
            && expected != found
        {
            return Err(CorruptionKind::OutOfSequence { expected, found });
        }
        let follows = self.previous.is_none_or(|previous| previous == header.previous.get());
        let in_time = header.unix_ns.get() >= self.unix_ns;
        if follows && in_time { Ok(()) } else { Err(CorruptionKind::BrokenChain) }
    }

    /// Goes on behind a record.
    #[inline]
    pub(crate) fn advance(&mut self, header: &RecordHeader) {
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
