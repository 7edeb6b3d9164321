//! CRC-32C checksums, seeded per segment.

use lanecast_wire::checksum::{crc32c, crc32c_append};
use lanecast_wire::journal::{RecordHeader, SegmentHeader};

/// Seed of all record checksums of one segment, made of the journal's id and the segment's number.
/// Bytes of another journal, leftovers of a recycled file and bytes that a client puts into a body
/// therefore never pass as records of this segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seed(u32);

impl Seed {
    /// The seed of segment `segment` of the journal with id `journal`.
    pub(crate) fn new(journal: u64, segment: u64) -> Self {
        let journal = crc32c(&journal.to_le_bytes());
        Self(crc32c_append(journal, &[&segment.to_le_bytes()]))
    }

    /// Checksum of a body.
    #[inline]
    pub(crate) fn body(self, bytes: &[u8]) -> u32 {
        crc32c_append(self.0, &[bytes])
    }

    /// Checksum of a body in two pieces: that of the whole.
    #[inline]
    pub(crate) fn parts(self, parts: [&[u8]; 2]) -> u32 {
        crc32c_append(self.0, &parts)
    }

    /// Checksum of a record's header.
    #[inline]
    pub(crate) fn header(self, header: &RecordHeader) -> u32 {
        crc32c_append(self.0, &[header.covered()])
    }

    /// Whether the header matches its checksum.
    #[inline]
    pub(crate) fn verifies(self, header: &RecordHeader) -> bool {
        self.header(header) == header.crc.get()
    }
}

/// Checksum of a segment's header. It is not seeded, because the header itself holds the seed's
/// inputs.
pub(crate) fn of_segment(header: &SegmentHeader) -> u32 {
    crc32c(header.covered())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_crc_32c() {
        // The check value of the catalogue of CRCs.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        let seed = Seed::new(0x0123_4567_89ab_cdef, 3);
        let mut bytes = 0x0123_4567_89ab_cdef_u64.to_le_bytes().to_vec();
        bytes.extend_from_slice(&3_u64.to_le_bytes());
        bytes.extend_from_slice(b"body");
        assert_eq!(seed.body(b"body"), crc32c(&bytes));
        for at in 0..=4 {
            let (head, rest) = b"body".split_at(at);
            assert_eq!(seed.parts([head, rest]), seed.body(b"body"));
        }
        let others = [Seed::new(1, 3), Seed::new(0x0123_4567_89ab_cdef, 4)];
        assert!(others.iter().all(|other| other.body(b"body") != seed.body(b"body")));
    }
}
