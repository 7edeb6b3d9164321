//! Records become bytes, and get their places.

use crate::chain::Chain;
use crate::checksum::Seed;
use crate::error::AppendError;
use crate::group::{Group, Piece};
use crate::index::{Index, Mark};
use crate::record::Entry;
use crate::segment::Shape;
use lanecast_wire::journal::{
    BODY_MAX, KIND_ENTRY, KIND_SEAL, RECORD_ALIGN, RECORD_HEADER, RECORDS_OFFSET, RecordHeader,
    record_bytes,
};
use zerocopy::{FromZeros, IntoBytes};

/// Where the next record goes, and what it follows. Touches no file.
#[derive(Debug)]
pub(crate) struct Encoder {
    shape: Shape,
    seed: Seed,
    /// The segment that is written to, and how long it is: it may be one of another length.
    segment: u64,
    segment_bytes: u64,
    offset: u64,
    sequence: u64,
    previous: u32,
    unix_ns: u64,
}

impl Encoder {
    /// Goes on at `offset` of `segment`, behind what `chain` knows.
    pub(crate) fn new(
        shape: Shape,
        chain: &Chain,
        segment: u64,
        segment_bytes: u64,
        offset: u64,
    ) -> Self {
        Self {
            shape,
            seed: Seed::new(shape.journal, segment),
            segment,
            segment_bytes,
            offset,
            sequence: chain.next.unwrap_or(1),
            previous: chain.previous.unwrap_or(0),
            unix_ns: chain.unix_ns,
        }
    }

    /// The sequence that the next record gets.
    pub(crate) const fn next(&self) -> u64 {
        self.sequence
    }

    /// Whether a body of this length can be appended at all.
    pub(crate) fn check(&self, body: &[u8]) -> Result<(), AppendError> {
        let room = self.shape.segment_bytes - RECORDS_OFFSET - RECORD_HEADER;
        let fits = body.len() as u64 <= u64::from(BODY_MAX) && needs(body) <= room;
        if fits { Ok(()) } else { Err(AppendError::TooLong) }
    }

    /// Adds `entry`, which was checked, to `group`. All up to `durable` is durable by now.
    pub(crate) fn encode(&mut self, entry: &Entry<'_>, durable: u64, group: &mut Group) {
        if self.offset + needs(entry.body) + RECORD_HEADER > self.segment_bytes {
            self.seal(durable, group);
        }
        self.unix_ns = self.unix_ns.max(entry.unix_ns);
        let mut header = self.header(KIND_ENTRY, durable);
        header.body_crc = self.seed.body(entry.body).into();
        header.length = (entry.body.len() as u32).into();
        header.topic = entry.topic.into();
        header.client = entry.client.into();
        header.client_sequence = entry.client_sequence.into();
        header.flags = entry.flags.into();
        let offset = self.offset;
        let mark = Mark { sequence: self.sequence, unix_ns: self.unix_ns, offset };
        self.put(&mut header, entry.body, group);
        self.sequence += 1;
        let Some(piece) = group.pieces.last_mut() else { return };
        piece.last = mark.sequence;
        piece.index.note(mark);
        if offset == RECORDS_OFFSET {
            piece.first = Some(mark);
        }
    }

    /// Ends the segment.
    fn seal(&mut self, durable: u64, group: &mut Group) {
        let mut header = self.header(KIND_SEAL, durable);
        header.body_crc = self.seed.body(&[]).into();
        self.put(&mut header, &[], group);
        self.segment += 1;
        self.seed = Seed::new(self.shape.journal, self.segment);
        self.segment_bytes = self.shape.segment_bytes;
        self.offset = RECORDS_OFFSET;
    }

    fn header(&self, kind: u16, durable: u64) -> RecordHeader {
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

    fn put(&mut self, header: &mut RecordHeader, body: &[u8], group: &mut Group) {
        self.previous = self.seed.header(header);
        header.crc = self.previous.into();
        let start = group.bytes.len();
        if group.pieces.last().is_none_or(|piece| piece.segment != self.segment) {
            group.pieces.push(Piece {
                segment: self.segment,
                offset: self.offset,
                range: start..start,
                last: self.sequence - 1,
                first: None,
                index: Index::default(),
            });
        }
        let length = needs(body);
        let padding = length as usize - size_of::<RecordHeader>() - body.len();
        group.bytes.reserve(length as usize);
        group.bytes.extend_from_slice(header.as_bytes());
        group.bytes.extend_from_slice(body);
        group.bytes.extend_from_slice(&[0; RECORD_ALIGN as usize][..padding]);
        if let Some(piece) = group.pieces.last_mut() {
            piece.range.end = group.bytes.len();
        }
        self.offset += length;
    }
}

fn needs(body: &[u8]) -> u64 {
    record_bytes(body.len() as u64)
}
