//! From record to record through a segment, checking each.

use crate::chain::Chain;
use crate::error::Flaw;
use crate::segment::Segment;
use crate::storage::{Outcome, StoredFile};
use crate::window::Window;
use lanecast_wire::journal::{KIND_SEAL, RECORD_HEADER, RECORDS_OFFSET, RecordHeader};

/// What is at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// The next record; its body lies at the offset.
    Record(RecordHeader, u64),
    /// The end of a segment that is complete.
    Sealed,
    /// Nothing that counts.
    Stopped(Flaw),
}

/// A place in a segment, and what is known of what comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    pub(crate) chain: Chain,
    pub(crate) offset: u64,
}

impl Walk {
    /// At the beginning of a segment.
    pub(crate) const fn new(chain: Chain) -> Self {
        Self { chain, offset: RECORDS_OFFSET }
    }

    /// Looks at the next record, and goes behind it if it is right.
    #[inline]
    pub(crate) fn step<F: StoredFile>(
        &mut self,
        window: &mut Window,
        segment: &Segment<F>,
    ) -> Outcome<Step> {
        let header = match header_at(window, segment, self.offset)? {
            Ok(header) => header,
            Err(flaw) => return Ok(Step::Stopped(flaw)),
        };
        if let Err(flaw) = self.chain.check(&header) {
            return Ok(Step::Stopped(flaw));
        }
        let (body, length) = (self.offset + RECORD_HEADER, header.length.get() as usize);
        let bytes = window.get(&segment.file, body, length)?;
        if bytes.is_none_or(|bytes| segment.seed.body(bytes) != header.body_crc.get()) {
            return Ok(Step::Stopped(Flaw::Body));
        }
        self.chain.advance(&header);
        self.offset += header.bytes();
        let is_seal = header.kind.get() == KIND_SEAL;
        Ok(if is_seal { Step::Sealed } else { Step::Record(header, body) })
    }
}

/// The header at `offset`, if its checksum is right.
#[inline]
pub(crate) fn header_at<F: StoredFile>(
    window: &mut Window,
    segment: &Segment<F>,
    offset: u64,
) -> Outcome<Result<RecordHeader, Flaw>> {
    let Some(bytes) = window.get(&segment.file, offset, RECORD_HEADER as usize)? else {
        return Ok(Err(Flaw::Nothing));
    };
    let read = RecordHeader::read(bytes, offset, segment.bytes);
    Ok(match read.filter(|header| segment.seed.vouches(header)) {
        Some(header) => Ok(header),
        None if bytes.iter().all(|byte| *byte == 0) => Err(Flaw::Nothing),
        None => Err(Flaw::Header),
    })
}
