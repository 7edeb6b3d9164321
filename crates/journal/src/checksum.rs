//! The journal's checksums.

use lanecast_wire::journal::{RecordHeader, SegmentHeader};

/// What all checksums of one segment begin with, so that no other journal's bytes, nothing that
/// the file held when it was another segment, and nothing that a client puts into a body, are
/// taken for its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seed(u32);

impl Seed {
    /// That of the segment with this number in the journal with that one.
    pub(crate) fn new(journal: u64, segment: u64) -> Self {
        let journal = crc32c::crc32c(&journal.to_le_bytes());
        Self(crc32c::crc32c_append(journal, &segment.to_le_bytes()))
    }

    /// The checksum of a body.
    #[inline]
    pub(crate) fn body(self, bytes: &[u8]) -> u32 {
        crc32c::crc32c_append(self.0, bytes)
    }

    /// The checksum of a record's header.
    #[inline]
    pub(crate) fn header(self, header: &RecordHeader) -> u32 {
        crc32c::crc32c_append(self.0, header.covered())
    }

    /// Whether the header's checksum is right.
    #[inline]
    pub(crate) fn verifies(self, header: &RecordHeader) -> bool {
        self.header(header) == header.crc.get()
    }
}

/// The checksum of a segment's header; not seeded, since it tells the seed.
pub(crate) fn of_segment(header: &SegmentHeader) -> u32 {
    crc32c::crc32c(header.covered())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_crc_32c() {
        // The check value of the catalogue of CRCs.
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
        let seed = Seed::new(0x0123_4567_89ab_cdef, 3);
        let mut bytes = 0x0123_4567_89ab_cdef_u64.to_le_bytes().to_vec();
        bytes.extend_from_slice(&3_u64.to_le_bytes());
        bytes.extend_from_slice(b"body");
        assert_eq!(seed.body(b"body"), crc32c::crc32c(&bytes));
        let others = [Seed::new(1, 3), Seed::new(0x0123_4567_89ab_cdef, 4)];
        assert!(others.iter().all(|other| other.body(b"body") != seed.body(b"body")));
    }
}
