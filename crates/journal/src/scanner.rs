//! Scans a segment record by record and verifies each. Shared by cursors and recovery.

use crate::error::CorruptionKind;
use crate::read_buffer::ReadBuffer;
use crate::segment::Segment;
use crate::sequence_check::SequenceCheck;
use crate::storage::{StorageResult, StoredFile};
use lanecast_wire::journal::{KIND_SEAL, RECORD_HEADER, RECORDS_OFFSET, RecordHeader};

/// Result of a scan step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// The next record, which the read buffer holds at this offset.
    Record(u64),
    /// The segment's seal.
    Sealed,
    /// No valid record.
    Stopped(CorruptionKind),
}

/// A position in a segment, and the expected continuation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordScanner {
    pub(crate) sequence_check: SequenceCheck,
    pub(crate) offset: u64,
}

impl RecordScanner {
    /// At the start of a segment.
    pub(crate) const fn new(sequence_check: SequenceCheck) -> Self {
        Self { sequence_check, offset: RECORDS_OFFSET }
    }

    /// Reads and verifies the record at the position; advances behind it if it is valid.
    #[inline]
    pub(crate) fn step<F: StoredFile>(
        &mut self,
        read_buffer: &mut ReadBuffer,
        segment: &Segment<F>,
    ) -> StorageResult<Step> {
        let offset = self.offset;
        let header = match header_at(read_buffer, segment, offset)? {
            Ok(header) => header,
            Err(kind) => return Ok(Step::Stopped(kind)),
        };
        if let Err(kind) = self.sequence_check.check(header) {
            return Ok(Step::Stopped(kind));
        }
        // The header is verified, so its length lies within the segment.
        let whole = RECORD_HEADER as usize + header.length.get() as usize;
        let crc = header.crc.get();
        if !read_buffer.holds(offset, whole) {
            if read_buffer.get(&segment.file, offset, whole)?.is_none() {
                return Ok(Step::Stopped(CorruptionKind::Body));
            }
            // Read a second time: the file may have become another segment meanwhile.
            match header_at(read_buffer, segment, offset)? {
                Ok(header) if header.crc.get() == crc => {}
                Ok(_) => return Ok(Step::Stopped(CorruptionKind::Body)),
                Err(kind) => return Ok(Step::Stopped(kind)),
            }
        }
        let (header, body) = read_buffer.record(offset);
        if segment.seed.body(body) != header.body_crc.get() {
            return Ok(Step::Stopped(CorruptionKind::Body));
        }
        self.sequence_check.advance(header);
        self.offset += header.bytes();
        let is_seal = header.kind.get() == KIND_SEAL;
        Ok(if is_seal { Step::Sealed } else { Step::Record(offset) })
    }
}

/// The header at `offset`, if it is valid.
#[inline]
pub(crate) fn header_at<'a, F: StoredFile>(
    read_buffer: &'a mut ReadBuffer,
    segment: &Segment<F>,
    offset: u64,
) -> StorageResult<Result<&'a RecordHeader, CorruptionKind>> {
    let Some(bytes) = read_buffer.get(&segment.file, offset, RECORD_HEADER as usize)? else {
        return Ok(Err(CorruptionKind::NoRecord));
    };
    let read = RecordHeader::read(bytes, offset, segment.bytes);
    Ok(match read.filter(|header| segment.seed.verifies(header)) {
        Some(header) => Ok(header),
        None if bytes.iter().all(|byte| *byte == 0) => Err(CorruptionKind::NoRecord),
        None => Err(CorruptionKind::Header),
    })
}
