//! Sparse index of a segment: one mark per stride of records, so a search reads no more than that.

use crate::checksum::Seed;
use core::ops::Range;
use lanecast_wire::journal::{INDEX_STRIDE, IndexHeader, IndexMark, RecordHeader};
use zerocopy::IntoBytes;

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

/// Records from a mark to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) mark: Mark,
    /// Offset of the next mark; none behind the last.
    pub(crate) end: Option<u64>,
}

/// Marks of one segment, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index(Vec<Mark>);

impl Index {
    /// Adds `mark` if the last one is a stride away.
    #[inline]
    pub(crate) fn note(&mut self, mark: Mark) {
        if self.0.last().is_none_or(|last| mark.offset - last.offset >= INDEX_STRIDE) {
            self.0.push(mark);
        }
    }

    /// Adds `mark`, whatever the distance.
    #[inline]
    pub(crate) fn push(&mut self, mark: Mark) {
        self.0.push(mark);
    }

    /// Adds the marks of later records.
    pub(crate) fn extend(&mut self, marks: &Self) {
        self.0.extend_from_slice(&marks.0);
    }

    /// The interval with record `sequence`, if it is in this segment.
    pub(crate) fn before_sequence(&self, sequence: u64) -> Option<Interval> {
        self.before(|mark| mark.sequence <= sequence)
    }

    /// The interval in which times reach `unix_ns`. A mark with that very time does not do: records
    /// before it may share it.
    pub(crate) fn before_time(&self, unix_ns: u64) -> Option<Interval> {
        self.before(|mark| mark.unix_ns < unix_ns)
    }

    fn before(&self, is_before: impl Fn(&Mark) -> bool) -> Option<Interval> {
        // Before the first mark the search starts at the first mark.
        let count = self.0.partition_point(is_before).max(1);
        let end = self.0.get(count).map(|next| next.offset);
        self.0.get(count - 1).map(|mark| Interval { mark: *mark, end })
    }

    /// The bytes of the index file of `segment`, whose successor begins with record `next`; `None`
    /// without marks.
    pub(crate) fn encode(&self, journal: u64, segment: u64, next: u64) -> Option<Vec<u8>> {
        let first = self.0.first()?.sequence;
        let mut marks = Vec::with_capacity(self.0.len());
        for mark in &self.0 {
            marks.push(IndexMark {
                // A segment has fewer records, and fewer bytes, than 2^32.
                sequence: u32::try_from(mark.sequence - first).ok()?.into(),
                offset: u32::try_from(mark.offset).ok()?.into(),
                unix_ns: mark.unix_ns.into(),
            });
        }
        let seed = Seed::new(journal, segment);
        let count = u32::try_from(marks.len()).ok()?;
        let mut header = IndexHeader::new(journal, segment, first..next, count);
        header.marks_crc = seed.body(marks.as_bytes()).into();
        header.crc = seed.body(header.covered()).into();
        Some([header.as_bytes(), marks.as_bytes()].concat())
    }

    /// Reads an index file, which may hold any bytes: the index and the sequences of the segment's
    /// records, if it is that of this segment and undamaged.
    pub(crate) fn decode(bytes: &[u8], journal: u64, segment: u64) -> Option<(Self, Range<u64>)> {
        let (header, marks) = IndexHeader::read(bytes)?;
        let seed = Seed::new(journal, segment);
        let is_this = header.journal.get() == journal && header.segment.get() == segment;
        let is_whole = seed.body(header.covered()) == header.crc.get()
            && seed.body(marks.as_bytes()) == header.marks_crc.get();
        let first = header.first.get();
        let mark = |mark: &IndexMark| Mark {
            sequence: first + u64::from(mark.sequence.get()),
            unix_ns: mark.unix_ns.get(),
            offset: u64::from(mark.offset.get()),
        };
        let sequences = first..header.next.get();
        (is_this && is_whole).then(|| (Self(marks.iter().map(mark).collect()), sequences))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of 256 bytes from sequence 10 on, four of each time.
    fn filled() -> Index {
        let mut index = Index::default();
        for number in 0..4000_u64 {
            let unix_ns = 1000 + number / 4;
            index.note(Mark { sequence: 10 + number, unix_ns, offset: 8192 + 256 * number });
        }
        index
    }

    #[test]
    fn marks_are_far_apart_and_found_by_number_and_time() {
        assert_eq!(Index::default().before_sequence(1), None);
        let index = filled();
        assert_eq!(index.0.len(), 4000_usize.div_ceil(128));
        let at = |interval: Option<Interval>| interval.unwrap().mark.sequence;
        assert_eq!(at(index.before_sequence(10 + 127)), 10);
        assert_eq!(at(index.before_sequence(10 + 128)), 10 + 128);
        assert_eq!(at(index.before_sequence(u64::MAX)), 10 + 128 * 31);
        assert_eq!(index.before_sequence(10 + 128).unwrap().end, Some(8192 + 256 * 256));
        assert_eq!(index.before_sequence(u64::MAX).unwrap().end, None);
        // The mark itself has the time that is looked for; records before it may have it too.
        assert_eq!(at(index.before_time(1000 + 32)), 10);
        assert_eq!(at(index.before_time(1000 + 33)), 10 + 128);
        assert_eq!(at(index.before_time(0)), 10);
    }

    #[test]
    fn a_file_gives_the_index_back_and_any_damage_is_noticed() {
        let index = filled();
        let bytes = index.encode(5, 7, 4010).unwrap();
        assert_eq!(bytes.len(), 64 + 16 * 32);
        assert_eq!(Index::decode(&bytes, 5, 7), Some((index, 10..4010)));
        assert_eq!(Index::decode(&bytes, 6, 7), None, "another journal's");
        assert_eq!(Index::decode(&bytes, 5, 8), None, "another segment's");
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(Index::decode(&damaged, 5, 7), None, "byte {at}");
            assert_eq!(Index::decode(&bytes[..at], 5, 7), None, "cut at {at}");
        }
        assert_eq!(Index::default().encode(5, 7, 1), None);
    }
}
