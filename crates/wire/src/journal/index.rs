//! The sparse index beside a sealed segment: positions of some of its records.
//!
//! ```text
//! 0   IndexHeader
//! 64  IndexMark, count times, in the order of the records
//! ```
//!
//! It can be made anew from the segment at any time, so a damaged one is no loss.

use super::{NUMBER_END, RECORD_ALIGN, RECORDS_OFFSET, SEGMENT_MAX};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// The first bytes of an index.
pub const INDEX_MAGIC: [u8; 8] = *b"LANEJIDX";
/// The version of the layout.
pub const INDEX_VERSION: u32 = 1;
/// Bytes of records between two marks, and no more than a record in addition.
pub const INDEX_STRIDE: u64 = 32 << 10;
/// The most marks of an index.
pub const INDEX_MARKS_MAX: u64 = SEGMENT_MAX / INDEX_STRIDE + 1;

/// Header of an index.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct IndexHeader {
    /// [`INDEX_MAGIC`].
    pub magic: [u8; 8],
    /// [`INDEX_VERSION`].
    pub version: U32,
    /// Number of marks: at least one.
    pub count: U32,
    /// The journal's id.
    pub journal: U64,
    /// The segment's number.
    pub segment: U64,
    /// Sequence of the segment's first record.
    pub first: U64,
    /// Sequence of the next segment's first record.
    pub next: U64,
    _reserved: U64,
    /// The checksum of the marks.
    pub marks_crc: U32,
    /// The checksum of the bytes before it.
    pub crc: U32,
}

/// Position of a record.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct IndexMark {
    /// The record's sequence, less [`IndexHeader::first`].
    pub sequence: U32,
    /// The record's offset in the segment.
    pub offset: U32,
    /// The record's time.
    pub unix_ns: U64,
}

impl IndexHeader {
    /// A header that lacks its checksums.
    pub fn new(journal: u64, segment: u64, records: core::ops::Range<u64>, count: u32) -> Self {
        Self {
            magic: INDEX_MAGIC,
            version: INDEX_VERSION.into(),
            count: count.into(),
            journal: journal.into(),
            segment: segment.into(),
            first: records.start.into(),
            next: records.end.into(),
            _reserved: U64::ZERO,
            marks_crc: U32::ZERO,
            crc: U32::ZERO,
        }
    }

    /// The bytes that the header's checksum covers.
    pub fn covered(&self) -> &[u8] {
        &self.as_bytes()[..size_of::<Self>() - size_of::<U32>()]
    }

    /// Reads an index but for its checksums: its header and its marks, if these can be of one
    /// segment. `bytes` may come from anywhere.
    pub fn read(bytes: &[u8]) -> Option<(Self, &[IndexMark])> {
        let (header, rest) = Self::read_from_prefix(bytes).ok()?;
        let count = header.count.get() as usize;
        let marks = <[IndexMark]>::ref_from_bytes_with_elems(rest, count).ok()?;
        let (first, next) = (header.first.get(), header.next.get());
        let is_sane = header.magic == INDEX_MAGIC
            && header.version.get() == INDEX_VERSION
            && (1..next).contains(&first)
            && next < NUMBER_END
            && (1..NUMBER_END).contains(&header.segment.get());
        let starts = marks.first()?;
        let begins = starts.sequence.get() == 0 && u64::from(starts.offset.get()) == RECORDS_OFFSET;
        let ascend = marks.windows(2).all(|pair| {
            let sequences = pair[0].sequence.get() < pair[1].sequence.get();
            let offsets = pair[0].offset.get() < pair[1].offset.get();
            sequences && offsets && pair[0].unix_ns.get() <= pair[1].unix_ns.get()
        });
        let is_aligned = |mark: &IndexMark| u64::from(mark.offset.get()) % RECORD_ALIGN == 0;
        let last = marks.last()?;
        let within = first + u64::from(last.sequence.get()) < next
            && u64::from(last.offset.get()) < SEGMENT_MAX;
        let is_index = is_sane && begins && ascend && within && marks.iter().all(is_aligned);
        is_index.then_some((header, marks))
    }
}

const _: () = {
    assert!(size_of::<IndexHeader>() == 64);
    assert!(size_of::<IndexMark>() == 16);
};
