//! Checkpoints of a store: what the records of its log up to a position say, in one file.
//!
//! ```text
//! 0    CheckpointHeader
//! 64   for each stream, in the order of their numbers:
//!        StreamEntry, PacingEntry, LifeEntry, DeparturesEntry, the topic, members, runs
//!        RegistrationBody for each receiver, DetachBody for each one that has left
//!        IndexEntry, and for each span SpanEntry and its MarkEntry
//! ```

use super::lists::{BallotEntry, add_runs, bounded, flag, runs};
use super::offer::{ConsumedBody, DetachBody, RegisteredBody, RegistrationBody};
use super::{Ballot, DEPARTURES_MAX, Departure, Members, Registered, Run, STORE_NUMBER_MAX};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// The first bytes of a checkpoint.
pub const CHECKPOINT_MAGIC: [u8; 8] = *b"LANECHKP";
/// The version of the layout.
pub const CHECKPOINT_VERSION: u32 = 4;
/// The oldest version that is read: its entries tell no pacing, and its receivers no flags. Up to
/// version 2 they tell no lives, up to version 3 no receivers that have left.
pub const CHECKPOINT_VERSION_READ: u32 = 1;

/// No sequence.
const NONE: u64 = u64::MAX;

/// Header of a checkpoint.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct CheckpointHeader {
    /// [`CHECKPOINT_MAGIC`].
    pub magic: [u8; 8],
    /// [`CHECKPOINT_VERSION`].
    pub version: U32,
    /// Number of streams.
    pub streams: U32,
    /// The store's incarnation.
    pub incarnation: U64,
    /// Sequence of the last record that is covered, in the journal.
    pub position: U64,
    /// Checksum of that record's header: it tells another history apart.
    pub record_crc: U32,
    /// Reserved, zero.
    pub reserved: U32,
    /// Bytes of the covered records since the journal began.
    pub journal_bytes: U64,
    /// Bytes behind this header.
    pub length: U64,
    /// CRC-32C of those.
    pub body_crc: U32,
    /// CRC-32C of the bytes before it.
    pub crc: U32,
}

impl CheckpointHeader {
    /// The bytes that the header's checksum covers.
    pub fn covered(&self) -> &[u8] {
        &self.as_bytes()[..size_of::<Self>() - size_of::<U32>()]
    }
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct StreamEntry {
    pub(super) source: U64,
    pub(super) promised: BallotEntry,
    pub(super) log: BallotEntry,
    pub(super) first: U64,
    pub(super) next: U64,
    pub(super) copied: U64,
    pub(super) number: U64,
    pub(super) receivers: U32,
    pub(super) topic: U32,
}

/// Stands in checkpoints from version 2 on.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct PacingEntry {
    pub(super) is_receiver_paced: u8,
    pub(super) reserved: [u8; 7],
}

/// Stands in checkpoints from version 3 on.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct LifeEntry {
    pub(super) ended: U64,
}

/// Stands in checkpoints from version 4 on.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct DeparturesEntry {
    pub(super) count: U32,
    pub(super) reserved: U32,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct IndexEntry {
    pub(super) bytes: U64,
    pub(super) spans: U32,
    pub(super) is_open: u8,
    pub(super) reserved: [u8; 3],
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct SpanEntry {
    pub(super) first: U64,
    pub(super) end: U64,
    pub(super) marks: U32,
    pub(super) is_moved: u8,
    pub(super) reserved: [u8; 3],
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct MarkEntry {
    pub(super) sequence: U64,
    pub(super) position: U64,
    pub(super) bytes: U64,
    pub(super) journal_bytes: U64,
    pub(super) unix_ns: U64,
}

/// State of a stream at a store, as the records of its log say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamCheckpoint<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The publisher's stable id.
    pub source: u64,
    /// The last run that was promised.
    pub promised: Ballot,
    /// The last run that began.
    pub log: Ballot,
    /// Sequence of the oldest message.
    pub first: u64,
    /// Sequence after the last message.
    pub next: u64,
    /// Sequence after the copies, between a truncation and the run that makes them part of the log.
    pub copied: Option<u64>,
    /// Number of the current run's first message on its topic.
    pub number: u64,
    /// Registered receivers hold the publisher back.
    pub is_receiver_paced: bool,
    /// The latest life of all receivers whose registrations have ended.
    pub ended_life: u64,
    /// The stores that hold the stream.
    pub members: Members,
    /// The runs in the log.
    pub runs: Vec<Run>,
    /// The registered receivers, in ascending order.
    pub receivers: Vec<Registered>,
    /// The last receivers that have given up their registrations, in the order in which they left;
    /// no more than [`DEPARTURES_MAX`].
    pub departures: Vec<Departure>,
}

/// Positions of a stream's messages in the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamPositions {
    /// Bytes of the stream's messages so far.
    pub bytes: u64,
    /// The next message may continue the last span.
    pub is_open: bool,
    /// Spans, in the order of their sequences, which do not overlap.
    pub spans: Vec<Span>,
}

/// Messages with consecutive sequences whose records stand in the journal in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Sequence of the first message.
    pub first: u64,
    /// Sequence after the last.
    pub end: u64,
    /// Retention has moved them forward.
    pub is_moved: bool,
    /// Positions of some of them; the first mark is not behind the first message.
    pub marks: Vec<SpanMark>,
}

/// Position of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanMark {
    /// The message's sequence.
    pub sequence: u64,
    /// Sequence of its record in the journal.
    pub position: u64,
    /// Bytes of the stream's messages before it.
    pub bytes: u64,
    /// Bytes of the journal's records before it.
    pub journal_bytes: u64,
    /// Time of its record, in nanoseconds since 1970.
    pub unix_ns: u64,
}

impl StreamCheckpoint<'_> {
    /// Appends the entry to `bytes`.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let entry = StreamEntry {
            source: self.source.into(),
            promised: self.promised.into(),
            log: self.log.into(),
            first: self.first.into(),
            next: self.next.into(),
            copied: self.copied.unwrap_or(NONE).into(),
            number: self.number.into(),
            receivers: (self.receivers.len() as u32).into(),
            topic: (self.topic.len() as u32).into(),
        };
        bytes.extend(entry.as_bytes());
        let is_receiver_paced = self.is_receiver_paced.into();
        bytes.extend(PacingEntry { is_receiver_paced, reserved: [0; 7] }.as_bytes());
        bytes.extend(LifeEntry { ended: self.ended_life.into() }.as_bytes());
        let departures = &self.departures[..self.departures.len().min(DEPARTURES_MAX)];
        let count = (departures.len() as u32).into();
        bytes.extend(DeparturesEntry { count, reserved: 0.into() }.as_bytes());
        bytes.extend(self.topic.as_bytes());
        self.members.write(bytes);
        add_runs(&self.runs, bytes);
        for registered in &self.receivers {
            bytes.extend(RegistrationBody::from(*registered).as_bytes());
        }
        departures.iter().for_each(|it| bytes.extend(DetachBody::from(*it).as_bytes()));
    }

    /// Reads an entry of a checkpoint of `version` from the front of `bytes`, which may come from
    /// anywhere; and the rest.
    pub fn read(bytes: &[u8], version: u32) -> Option<(StreamCheckpoint<'_>, &[u8])> {
        let (entry, rest) = StreamEntry::read_from_prefix(bytes).ok()?;
        let (later, rest) = LaterEntries::read(rest, version)?;
        let (topic, rest) = rest.split_at_checked(entry.topic.get() as usize)?;
        let (members, rest) = Members::read(rest)?;
        let (runs, rest) = runs(rest)?;
        let (receivers, behind) = read_receivers(rest, entry.receivers.get() as usize, version)?;
        let (ends, rest) =
            <[DetachBody]>::ref_from_prefix_with_elems(behind, later.departures).ok()?;
        let departures = ends.iter().map(|it| it.read()).collect::<Option<Vec<_>>>()?;
        let copied = match entry.copied.get() {
            NONE => None,
            _ => Some(bounded(entry.copied)?),
        };
        let stream = StreamCheckpoint {
            topic: std::str::from_utf8(topic).ok()?,
            source: entry.source.get(),
            promised: entry.promised.ballot()?,
            log: entry.log.ballot()?,
            first: bounded(entry.first)?,
            next: bounded(entry.next)?,
            copied,
            number: bounded(entry.number)?,
            is_receiver_paced: later.is_receiver_paced,
            ended_life: later.ended_life,
            members,
            runs,
            receivers,
            departures,
        };
        Some((stream, rest))
    }
}

/// Parts of a stream's entry that the first version did not have.
#[derive(Default)]
struct LaterEntries {
    is_receiver_paced: bool,
    ended_life: u64,
    departures: usize,
}

impl LaterEntries {
    /// The parts that `version` has, and the rest.
    fn read(mut rest: &[u8], version: u32) -> Option<(Self, &[u8])> {
        let mut later = Self::default();
        if version >= 2 {
            let (pacing, behind) = PacingEntry::read_from_prefix(rest).ok()?;
            (later.is_receiver_paced, rest) = (flag(pacing.is_receiver_paced)?, behind);
        }
        if version >= 3 {
            let (life, behind) = LifeEntry::read_from_prefix(rest).ok()?;
            (later.ended_life, rest) = (bounded(life.ended)?, behind);
        }
        if version >= 4 {
            let (departures, behind) = DeparturesEntry::read_from_prefix(rest).ok()?;
            (later.departures, rest) = (departures.count.get() as usize, behind);
        }
        // Checked before memory is taken.
        (later.departures <= DEPARTURES_MAX).then_some((later, rest))
    }
}

/// The receivers of an entry, in ascending order, and the rest.
fn read_receivers(mut rest: &[u8], count: usize, version: u32) -> Option<(Vec<Registered>, &[u8])> {
    // Checked before memory is taken.
    if rest.len() / size_of::<ConsumedBody>() < count {
        return None;
    }
    let mut receivers: Vec<Registered> = Vec::with_capacity(count);
    for _ in 0..count {
        let (registered, behind) = read_registered(rest, version)?;
        if receivers.last().is_some_and(|last| last.receiver >= registered.receiver) {
            return None;
        }
        receivers.push(registered);
        rest = behind;
    }
    Some((receivers, rest))
}

/// A receiver of a checkpoint of `version`, and the rest.
fn read_registered(bytes: &[u8], version: u32) -> Option<(Registered, &[u8])> {
    if version == 1 {
        let (body, rest) = ConsumedBody::read_from_prefix(bytes).ok()?;
        return Some((body.registered()?, rest));
    }
    if version == 2 {
        let (body, rest) = RegisteredBody::read_from_prefix(bytes).ok()?;
        return Some((body.read()?, rest));
    }
    let (body, rest) = RegistrationBody::read_from_prefix(bytes).ok()?;
    Some((body.read()?, rest))
}

impl StreamPositions {
    /// Appends the positions to `bytes`.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let entry = IndexEntry {
            bytes: self.bytes.into(),
            spans: (self.spans.len() as u32).into(),
            is_open: self.is_open.into(),
            reserved: [0; 3],
        };
        bytes.extend(entry.as_bytes());
        for span in &self.spans {
            let entry = SpanEntry {
                first: span.first.into(),
                end: span.end.into(),
                marks: (span.marks.len() as u32).into(),
                is_moved: span.is_moved.into(),
                reserved: [0; 3],
            };
            bytes.extend(entry.as_bytes());
            for mark in &span.marks {
                let entry = MarkEntry {
                    sequence: mark.sequence.into(),
                    position: mark.position.into(),
                    bytes: mark.bytes.into(),
                    journal_bytes: mark.journal_bytes.into(),
                    unix_ns: mark.unix_ns.into(),
                };
                bytes.extend(entry.as_bytes());
            }
        }
    }

    /// Reads positions from the front of `bytes`, which may come from anywhere; and the rest.
    pub fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (entry, mut rest) = IndexEntry::read_from_prefix(bytes).ok()?;
        let mut spans: Vec<Span> = Vec::new();
        for _ in 0..entry.spans.get() {
            let (span, behind) = Span::read(rest)?;
            if spans.last().is_some_and(|last| last.end > span.first) {
                return None;
            }
            spans.push(span);
            rest = behind;
        }
        let is_open = flag(entry.is_open)?;
        Some((Self { bytes: entry.bytes.get(), is_open, spans }, rest))
    }
}

impl Span {
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (entry, rest) = SpanEntry::read_from_prefix(bytes).ok()?;
        let count = entry.marks.get() as usize;
        let (entries, rest) = <[MarkEntry]>::ref_from_prefix_with_elems(rest, count).ok()?;
        let mark = |entry: &MarkEntry| SpanMark {
            sequence: entry.sequence.get(),
            position: entry.position.get(),
            bytes: entry.bytes.get(),
            journal_bytes: entry.journal_bytes.get(),
            unix_ns: entry.unix_ns.get(),
        };
        let marks: Vec<SpanMark> = entries.iter().map(mark).collect();
        let (first, end) = (bounded(entry.first)?, bounded(entry.end)?);
        let begins = marks.first().is_some_and(|mark| mark.sequence <= first);
        let ends = marks
            .last()
            .is_some_and(|mark| mark.sequence < end && mark.position <= STORE_NUMBER_MAX);
        let ascend = marks.windows(2).all(|pair| {
            let is_later =
                pair[0].sequence < pair[1].sequence && pair[0].position < pair[1].position;
            // Times need not ascend: copies keep those of another store, whose clock may lag.
            is_later && pair[0].bytes <= pair[1].bytes
        });
        let is_moved = flag(entry.is_moved)?;
        let is_span = first < end && begins && ends && ascend;
        is_span.then_some((Self { first, end, is_moved, marks }, rest))
    }
}

const _: () = {
    assert!(size_of::<CheckpointHeader>() == 64);
    assert!(size_of::<StreamEntry>() == 80);
};
