//! What lies behind the place where records stop.

use crate::segment::Segment;
use crate::storage::{Outcome, StoredFile};
use crate::walk::header_at;
use crate::window::Window;
use core::ops::Range;
use lanecast_wire::journal::{KIND_ENTRY, RECORD_ALIGN, RECORD_HEADER, RECORDS_OFFSET};

/// How many zeros are looked at in one step.
const ZEROS: u64 = 4096;

/// Everything from some offset of a segment on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    /// Behind the last byte that a writer has left; `None` if it left none. That is one that is
    /// not zero, or, where the file was another segment before, a header's.
    pub(crate) end: Option<u64>,
    /// What the headers there say was durable before they were written: the largest.
    pub(crate) durable: Option<u64>,
    /// How many headers of records there are.
    pub(crate) records: u64,
}

impl Rest {
    /// Looks at every place where a header may be, and at headers only: the work is bounded by
    /// the segment's length, whatever lengths the headers tell.
    pub(crate) fn look<F: StoredFile>(
        window: &mut Window,
        segment: &Segment<F>,
        from: u64,
    ) -> Outcome<Self> {
        window.forget();
        let mut rest = Self::default();
        let (mut offset, end) = (from, segment.readable()?);
        while offset < end {
            let length = (end - offset).min(ZEROS);
            let Some(bytes) = window.get(&segment.file, offset, length as usize)? else { break };
            if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
                if !segment.is_recycled {
                    rest.end = Some(offset + last as u64 + 1);
                }
                rest.look_for_headers(window, segment, offset..offset + length)?;
            }
            offset += length;
        }
        Ok(rest)
    }

    fn look_for_headers<F: StoredFile>(
        &mut self,
        window: &mut Window,
        segment: &Segment<F>,
        range: Range<u64>,
    ) -> Outcome<()> {
        for offset in range.step_by(RECORD_ALIGN as usize) {
            if let Ok(header) = header_at(window, segment, offset)? {
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
pub(crate) fn is_blank<F: StoredFile>(window: &mut Window, segment: &Segment<F>) -> Outcome<bool> {
    window.forget();
    let (mut offset, end) = (RECORDS_OFFSET, segment.readable()?);
    while offset < end {
        let length = (end - offset).min(ZEROS);
        let Some(bytes) = window.get(&segment.file, offset, length as usize)? else { break };
        if bytes.iter().any(|byte| *byte != 0) {
            let mut rest = Rest::default();
            if segment.is_recycled {
                rest.look_for_headers(window, segment, offset..offset + length)?;
            }
            if !segment.is_recycled || rest.end.is_some() {
                return Ok(false);
            }
        }
        offset += length;
    }
    Ok(true)
}
