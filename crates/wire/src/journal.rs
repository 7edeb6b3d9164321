//! The journal's files: segments of records that outlive the process. See
//! `docs/protocol/journal.md`.
//!
//! ```text
//! 0      SegmentHeader   written before the file has its name
//! 4096   SegmentHeader   the same again
//! 8192   records         each a RecordHeader and a body, padded to 8 bytes; then zeros, or what
//!                        the file held when it was another segment
//! ```
//!
//! What is read here is plausible; whether it is true is told by the checksums, which are
//! `lanecast-journal`'s business.

mod index;

pub use index::{
    INDEX_MAGIC, INDEX_MARKS_MAX, INDEX_STRIDE, INDEX_VERSION, IndexHeader, IndexMark,
};

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The first bytes of a segment.
pub const JOURNAL_MAGIC: [u8; 8] = *b"LANEJRNL";
/// The version of the layout.
pub const JOURNAL_VERSION: u32 = 2;
/// Offsets of the two copies of the header.
pub const HEADER_OFFSETS: [u64; 2] = [0, 4096];
/// Offset of the records.
pub const RECORDS_OFFSET: u64 = 8192;
/// Records start at multiples of this.
pub const RECORD_ALIGN: u64 = 8;
/// The shortest segment, in bytes.
pub const SEGMENT_MIN: u64 = 16 << 10;
/// The longest segment, in bytes.
pub const SEGMENT_MAX: u64 = 1 << 30;
/// The longest body, in bytes.
pub const BODY_MAX: u32 = 16 << 20;
/// Sequences and segments' numbers are less, so that counting on never overflows.
pub const NUMBER_END: u64 = 1 << 63;
/// The bytes before a body.
pub const RECORD_HEADER: u64 = size_of::<RecordHeader>() as u64;
/// The record is an appended entry.
pub const KIND_ENTRY: u16 = 1;
/// The record says that the segment is complete and the next one goes on.
pub const KIND_SEAL: u16 = 2;
/// A segment's flag: the file was another segment before, so bytes that are no record of this one
/// are left from that.
pub const FLAG_RECYCLED: u32 = 1;

/// A segment's first bytes; they never change.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct SegmentHeader {
    /// [`JOURNAL_MAGIC`].
    pub magic: [u8; 8],
    /// [`JOURNAL_VERSION`].
    pub version: U32,
    /// [`FLAG_RECYCLED`], or nothing.
    pub flags: U32,
    /// The journal's number: random, the same in all its segments.
    pub journal: U64,
    /// The segment's number, from 1.
    pub segment: U64,
    /// The file's length.
    pub segment_bytes: U64,
    /// When the segment was made, in nanoseconds since 1970.
    pub created_unix_ns: U64,
    _reserved_too: [U32; 3],
    /// The checksum of the bytes before it.
    pub crc: U32,
}

/// Bytes of a segment header under its checksum.
pub const SEGMENT_COVERED: usize = size_of::<SegmentHeader>() - size_of::<U32>();

impl SegmentHeader {
    /// A header that lacks its checksum.
    pub fn new(journal: u64, segment: u64, segment_bytes: u64, created_unix_ns: u64) -> Self {
        Self {
            magic: JOURNAL_MAGIC,
            version: JOURNAL_VERSION.into(),
            flags: U32::ZERO,
            journal: journal.into(),
            segment: segment.into(),
            segment_bytes: segment_bytes.into(),
            created_unix_ns: created_unix_ns.into(),
            _reserved_too: [U32::ZERO; 3],
            crc: U32::ZERO,
        }
    }

    /// The bytes that the checksum covers.
    pub fn covered(&self) -> &[u8] {
        &self.as_bytes()[..SEGMENT_COVERED]
    }

    /// Reads and checks a header but for its checksum; `bytes` may come from anybody.
    ///
    /// # Errors
    /// See [`SegmentError`].
    pub fn read(bytes: &[u8]) -> Result<Self, SegmentError> {
        let (header, _) = Self::read_from_prefix(bytes).map_err(|_| SegmentError::Short)?;
        if header.magic != JOURNAL_MAGIC {
            return Err(SegmentError::Foreign);
        }
        let found = header.version.get();
        if found != JOURNAL_VERSION {
            return Err(SegmentError::Version { found });
        }
        let length = header.segment_bytes.get();
        let fits = (SEGMENT_MIN..=SEGMENT_MAX).contains(&length) && length % RECORD_ALIGN == 0;
        let is_known = header.flags.get() & !FLAG_RECYCLED == 0;
        if !fits || !is_known || !(1..NUMBER_END).contains(&header.segment.get()) {
            return Err(SegmentError::Damaged);
        }
        Ok(header)
    }
}

/// Why bytes are no segment header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    /// There are too few.
    #[error("the file is too short for a segment's header")]
    Short,
    /// Wrong magic number.
    #[error("it is no segment of a journal")]
    Foreign,
    /// Another version wrote them.
    #[error("it has layout version {found}, and this program reads version {JOURNAL_VERSION}")]
    Version {
        /// The version there.
        found: u32,
    },
    /// Wrong checksum or contradictory fields.
    #[error("its header is damaged")]
    Damaged,
    /// A header of another segment than the file's name says.
    #[error("it is segment {found}, and its name says another")]
    Number {
        /// The number there.
        found: u64,
    },
    /// The file has been cut, or has grown.
    #[error("the file has {found} bytes, and its header says {expected}")]
    Length {
        /// Length of the file.
        found: u64,
        /// Length in the header.
        expected: u64,
    },
}

/// Header of each record.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RecordHeader {
    /// The checksum of the rest of this header.
    pub crc: U32,
    /// The checksum of the body.
    pub body_crc: U32,
    /// `crc` of the record before; of the seal in a segment's first record; 0 in the first of all.
    pub previous: U32,
    /// The body's length in bytes.
    pub length: U32,
    /// The record's number, from 1; in a seal the number of the next one.
    pub sequence: U64,
    /// When it was appended, in nanoseconds since 1970; never less than in the record before.
    pub unix_ns: U64,
    /// The topic's number.
    pub topic: U32,
    /// The number of the client that published it.
    pub client: U32,
    /// The client's own number for it.
    pub client_sequence: U64,
    /// Lag of the disk: all records up to `sequence - unsynced` were
    /// durable before this one was written.
    pub unsynced: U32,
    /// Flags for the application.
    pub flags: U16,
    /// [`KIND_ENTRY`], [`KIND_SEAL`]; 0: nothing here yet.
    pub kind: U16,
}

impl RecordHeader {
    /// The bytes that the checksum covers.
    pub fn covered(&self) -> &[u8] {
        &self.as_bytes()[size_of::<U32>()..]
    }

    /// The header that a record at `offset` of a segment of `segment_bytes` may have, if these
    /// bytes are one; they may come from anybody.
    #[inline]
    pub fn read(bytes: &[u8], offset: u64, segment_bytes: u64) -> Option<&Self> {
        let (header, _) = Self::ref_from_prefix(bytes).ok()?;
        let length = header.length.get();
        let (fits, behind) = match header.kind.get() {
            // There is always room for the seal.
            KIND_ENTRY => (length <= BODY_MAX, RECORD_HEADER),
            KIND_SEAL => (length == 0, 0),
            _ => return None,
        };
        let end = offset.checked_add(record_bytes(u64::from(length)) + behind)?;
        let counts = (1..NUMBER_END).contains(&header.sequence.get());
        let sane = fits && counts && end <= segment_bytes;
        sane.then_some(header)
    }

    /// All records up to this one were durable before this one was written.
    pub fn durable(&self) -> u64 {
        self.sequence.get().saturating_sub(u64::from(self.unsynced.get()).max(1))
    }

    /// The bytes that the record takes in its segment.
    pub fn bytes(&self) -> u64 {
        record_bytes(u64::from(self.length.get()))
    }
}

/// The bytes that a record with a body of `length` bytes takes in a segment.
pub const fn record_bytes(length: u64) -> u64 {
    (length + RECORD_HEADER + RECORD_ALIGN - 1) & !(RECORD_ALIGN - 1)
}

const _: () = {
    assert!(size_of::<SegmentHeader>() == 64);
    assert!(size_of::<RecordHeader>() == 56);
    assert!(RECORD_HEADER.is_multiple_of(RECORD_ALIGN));
    assert!(HEADER_OFFSETS[1] + size_of::<SegmentHeader>() as u64 <= RECORDS_OFFSET);
    assert!(SEGMENT_MIN > RECORDS_OFFSET + 2 * RECORD_HEADER);
};

#[cfg(test)]
mod tests;
