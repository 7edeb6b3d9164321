//! Encodes entries into records and assigns their sequence and file position.

use crate::batch::{BatchPart, CommitBatch};
use crate::checksum::Seed;
use crate::error::AppendError;
use crate::index::{Index, Mark};
use crate::record::Entry;
use crate::segment::Format;
use crate::sequence_check::SequenceCheck;
use lanecast_wire::journal::{
    BODY_MAX, INDEX_STRIDE, KIND_ENTRY, KIND_SEAL, RECORD_HEADER, RECORDS_OFFSET, RecordHeader,
    record_bytes,
};
use zerocopy::{FromZeros, IntoBytes};

/// Position, sequence and checksum chain of the next record. Touches no file: the append queue
/// calls it under its lock.
#[derive(Debug)]
pub(crate) struct Encoder {
    format: Format,
    seed: Seed,
    /// Current segment and its length; it may predate a change of `segment_bytes`.
    segment: u64,
    segment_bytes: u64,
    offset: u64,
    sequence: u64,
    previous: u32,
    unix_ns: u64,
    /// Offset of the segment's last mark; `None` before the first record.
    marked: Option<u64>,
}

impl Encoder {
    /// Continues at `offset` of `segment`, behind the record that `sequence_check` knows.
    pub(crate) fn new(
        format: Format,
        sequence_check: &SequenceCheck,
        segment: u64,
        segment_bytes: u64,
        offset: u64,
    ) -> Self {
        Self {
            format,
            seed: Seed::new(format.journal, segment),
            segment,
            segment_bytes,
            offset,
            sequence: sequence_check.next.unwrap_or(1),
            previous: sequence_check.previous.unwrap_or(0),
            unix_ns: sequence_check.unix_ns,
            marked: None,
        }
    }

    /// Sequence of the next record.
    pub(crate) const fn next(&self) -> u64 {
        self.sequence
    }

    /// Segment of the next record, and the bytes that are left there.
    pub(crate) const fn place(&self) -> (u64, u64) {
        (self.segment, self.segment_bytes.saturating_sub(self.offset))
    }

    /// Checks that `entry` fits into an empty segment.
    pub(crate) fn check(&self, entry: &Entry<'_>) -> Result<(), AppendError> {
        let room = self.format.segment_bytes - RECORDS_OFFSET - RECORD_HEADER;
        let length = entry.length() as u64;
        let fits = length <= u64::from(BODY_MAX) && record_bytes(length) <= room;
        if fits { Ok(()) } else { Err(AppendError::TooLong) }
    }

    /// Encodes a checked `entry` into `batch`; `durable` is the last persisted sequence.
    pub(crate) fn encode(&mut self, entry: &Entry<'_>, durable: u64, batch: &mut CommitBatch) {
        // Room for the seal is always left.
        let length = entry.length();
        if self.offset + record_bytes(length as u64) + RECORD_HEADER > self.segment_bytes {
            self.seal(durable, batch);
        }
        // Times never decrease, so that cursors can search by time.
        self.unix_ns = self.unix_ns.max(entry.unix_ns);
        let mut header = self.header(KIND_ENTRY, durable);
        header.body_crc = self.seed.parts([entry.head, entry.body]).into();
        header.length = (length as u32).into();
        header.topic = entry.topic.into();
        header.client = entry.client.into();
        header.client_sequence = entry.client_sequence.into();
        header.flags = entry.flags.into();
        let offset = self.offset;
        let mark = Mark { sequence: self.sequence, unix_ns: self.unix_ns, offset };
        self.put(&mut header, [entry.head, entry.body], batch);
        self.sequence += 1;
        let Some(part) = batch.parts.last_mut() else { return };
        part.last = mark.sequence;
        // Counted over all batches: counted from each anew, marks would be up to two strides apart.
        if self.marked.is_none_or(|last| offset - last >= INDEX_STRIDE) {
            self.marked = Some(offset);
            part.index.push(mark);
        }
        // The first record of a segment goes into the catalog when it is durable.
        if offset == RECORDS_OFFSET {
            part.first = Some(mark);
        }
    }

    /// Writes the seal and moves to the next segment.
    fn seal(&mut self, durable: u64, batch: &mut CommitBatch) {
        let mut header = self.header(KIND_SEAL, durable);
        header.body_crc = self.seed.body(&[]).into();
        self.put(&mut header, [&[]; 2], batch);
        self.segment += 1;
        self.seed = Seed::new(self.format.journal, self.segment);
        self.segment_bytes = self.format.segment_bytes;
        self.offset = RECORDS_OFFSET;
        self.marked = None;
    }

    fn header(&self, kind: u16, durable: u64) -> RecordHeader {
        // Recovery reads `sequence - unsynced` as proof of what was durable before this record.
        let unsynced = u32::try_from(self.sequence - durable).unwrap_or(u32::MAX);
        RecordHeader {
            previous: self.previous.into(),
            sequence: self.sequence.into(),
            unix_ns: self.unix_ns.into(),
            unsynced: unsynced.into(),
            kind: kind.into(),
            ..RecordHeader::new_zeroed()
        }
    }

    fn put(&mut self, header: &mut RecordHeader, parts: [&[u8]; 2], batch: &mut CommitBatch) {
        // The checksum covers `previous`, which makes the records a chain.
        self.previous = self.seed.header(header);
        header.crc = self.previous.into();
        // One part per segment: each is one write and one synchronization.
        let is_new = batch.parts.last().is_none_or(|part| part.segment != self.segment);
        if is_new {
            batch.align(self.offset);
        }
        let start = batch.bytes.len();
        if is_new {
            batch.parts.push(BatchPart {
                segment: self.segment,
                offset: self.offset,
                range: start..start,
                last: self.sequence - 1,
                first: None,
                index: Index::default(),
            });
        }
        let length = header.bytes();
        batch.bytes.reserve(length as usize);
        batch.bytes.extend_from_slice(header.as_bytes());
        parts.iter().for_each(|part| batch.bytes.extend_from_slice(part));
        // Padding keeps headers aligned, and the tail scan looks at aligned offsets only.
        batch.bytes.resize(start + length as usize, 0);
        if let Some(part) = batch.parts.last_mut() {
            part.range.end = batch.bytes.len();
        }
        self.offset += length;
        batch.prefetch(length as usize);
    }
}
