//! Sparse index of a segment: one mark per 64 KiB of records, so a search reads no more than that.

use lanecast_wire::journal::RecordHeader;

/// Bytes of records between two marks.
const STRIDE: u64 = 64 << 10;

/// Position of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) sequence: u64,
    pub(crate) unix_ns: u64,
    pub(crate) offset: u64,
}

impl Mark {
    /// The mark of the record with this header at `offset`.
    pub(crate) fn of(header: &RecordHeader, offset: u64) -> Self {
        Self { sequence: header.sequence.get(), unix_ns: header.unix_ns.get(), offset }
    }
}

/// Marks of one segment, in order. Kept in memory only; a scan rebuilds it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index(Vec<Mark>);

impl Index {
    /// Adds `mark` if the last one is a stride away.
    #[inline]
    pub(crate) fn note(&mut self, mark: Mark) {
        if self.0.last().is_none_or(|last| mark.offset - last.offset >= STRIDE) {
            self.0.push(mark);
        }
    }

    /// Adds the marks of later records.
    pub(crate) fn extend(&mut self, marks: &Self) {
        marks.0.iter().for_each(|mark| self.note(*mark));
    }

    /// The first mark.
    pub(crate) fn first(&self) -> Option<Mark> {
        self.0.first().copied()
    }

    /// The last mark at or before record `sequence`.
    pub(crate) fn before_sequence(&self, sequence: u64) -> Option<Mark> {
        self.before(|mark| mark.sequence <= sequence)
    }

    /// The last mark before `unix_ns`. A mark with that very time does not do: records before it
    /// may share it.
    pub(crate) fn before_time(&self, unix_ns: u64) -> Option<Mark> {
        self.before(|mark| mark.unix_ns < unix_ns)
    }

    fn before(&self, is_before: impl Fn(&Mark) -> bool) -> Option<Mark> {
        let count = self.0.partition_point(is_before);
        // Before the first mark the search starts at the first mark.
        count.checked_sub(1).map(|last| self.0[last]).or(self.first())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_far_apart_and_found_by_number_and_time() {
        let mut index = Index::default();
        assert_eq!(index.before_sequence(1), None);
        for number in 0..4000_u64 {
            // Four records at a time.
            let unix_ns = 1000 + number / 4;
            index.note(Mark { sequence: 10 + number, unix_ns, offset: 8192 + 256 * number });
        }
        assert_eq!(index.0.len(), 4000_usize.div_ceil(256));
        let at = |mark: Option<Mark>| mark.unwrap().sequence;
        assert_eq!(at(index.before_sequence(10 + 255)), 10);
        assert_eq!(at(index.before_sequence(10 + 256)), 10 + 256);
        assert_eq!(at(index.before_sequence(u64::MAX)), 10 + 256 * 15);
        // The mark itself has the time that is looked for; records before it may have it too.
        assert_eq!(at(index.before_time(1000 + 64)), 10);
        assert_eq!(at(index.before_time(1000 + 65)), 10 + 256);
        assert_eq!(at(index.before_time(0)), 10);
    }
}
