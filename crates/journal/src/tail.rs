//! Tail scan: examines the bytes behind the last valid record.

use crate::read_buffer::ReadBuffer;
use crate::scanner::header_at;
use crate::segment::Segment;
use crate::storage::{StorageResult, StoredFile};
use core::ops::Range;
use lanecast_wire::journal::{KIND_ENTRY, RECORD_ALIGN, RECORD_HEADER, RECORDS_OFFSET};

/// Bytes examined per step while they are zero.
const STEP: u64 = 4096;

/// Zeros to compare a step with: `memcmp` takes vectors at any level of optimisation.
static ZEROS: [u8; STEP as usize] = [0; STEP as usize];

/// Findings about a segment's bytes from an offset on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    /// End of the last byte that a writer has left; `None` if there is none. In a recycled file
    /// only headers of this segment count, since old bytes remain.
    pub(crate) end: Option<u64>,
    /// Largest sequence that a header in the tail reports as durable at its time of writing.
    pub(crate) durable: Option<u64>,
    /// Number of record headers.
    pub(crate) records: u64,
}

impl Tail {
    /// Examines every position where a header may be. Reads headers only, so the work is bounded by
    /// the segment's length whatever lengths the headers claim.
    pub(crate) fn scan<F: StoredFile>(
        read_buffer: &mut ReadBuffer,
        segment: &Segment<F>,
        from: u64,
    ) -> StorageResult<Self> {
        read_buffer.forget();
        let mut tail = Self::default();
        let (mut offset, end) = (from, segment.readable()?);
        while offset < end {
            let length = (end - offset).min(STEP);
            let Some(bytes) = read_buffer.get(&segment.file, offset, length as usize)? else {
                break;
            };
            if let Some(last) = last_written(bytes) {
                // In a recycled file non-zero bytes may be old ones.
                if !segment.is_recycled {
                    tail.end = Some(offset + last as u64 + 1);
                }
                tail.scan_headers(read_buffer, segment, offset..offset + length)?;
            }
            offset += length;
        }
        Ok(tail)
    }

    fn scan_headers<F: StoredFile>(
        &mut self,
        read_buffer: &mut ReadBuffer,
        segment: &Segment<F>,
        range: Range<u64>,
    ) -> StorageResult<()> {
        // Records are aligned, so headers stand at multiples of the alignment only.
        for offset in range.step_by(RECORD_ALIGN as usize) {
            if let Ok(header) = header_at(read_buffer, segment, offset)? {
                self.durable = self.durable.max(Some(header.durable()));
                self.records += u64::from(header.kind.get() == KIND_ENTRY);
                if segment.is_recycled {
                    self.end = Some(offset + RECORD_HEADER);
                }
            }
        }
        Ok(())
    }
}

/// Whether a segment holds no record and no part of one.
pub(crate) fn is_blank<F: StoredFile>(
    read_buffer: &mut ReadBuffer,
    segment: &Segment<F>,
) -> StorageResult<bool> {
    read_buffer.forget();
    let (mut offset, end) = (RECORDS_OFFSET, segment.readable()?);
    while offset < end {
        let length = (end - offset).min(STEP);
        let Some(bytes) = read_buffer.get(&segment.file, offset, length as usize)? else { break };
        if last_written(bytes).is_some() {
            let mut tail = Tail::default();
            if segment.is_recycled {
                tail.scan_headers(read_buffer, segment, offset..offset + length)?;
            }
            if !segment.is_recycled || tail.end.is_some() {
                return Ok(false);
            }
        }
        offset += length;
    }
    Ok(true)
}

/// Index of the last byte of a step that is not zero.
fn last_written(bytes: &[u8]) -> Option<usize> {
    if bytes == &ZEROS[..bytes.len()] {
        return None;
    }
    bytes.iter().rposition(|byte| *byte != 0)
}
