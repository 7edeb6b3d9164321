//! Lists within frames: runs, names, messages. Counted, bounded, and checked before anything is
//! allocated.

use super::{Ballot, RUNS_MAX, Run, STORE_NAME_MAX, STORE_NUMBER_MAX};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// A ballot in a frame.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct BallotEntry {
    pub(super) epoch: U64,
    pub(super) session: U64,
}

impl From<Ballot> for BallotEntry {
    fn from(ballot: Ballot) -> Self {
        Self { epoch: ballot.epoch.into(), session: ballot.session.into() }
    }
}

impl BallotEntry {
    /// The ballot; `None` if its epoch is too large.
    pub(super) fn ballot(self) -> Option<Ballot> {
        Some(Ballot { epoch: bounded(self.epoch)?, session: self.session.get() })
    }
}

/// A run, and a sequence in its log.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Position {
    pub(super) ballot: BallotEntry,
    pub(super) sequence: U64,
}

/// A byte that is 0 or 1.
pub(super) const fn flag(byte: u8) -> Option<bool> {
    match byte {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// A sequence, number or epoch; `None` if it is too large.
pub(super) fn bounded(number: U64) -> Option<u64> {
    Some(number.get()).filter(|number| *number <= STORE_NUMBER_MAX)
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct RunEntry {
    pub(super) ballot: BallotEntry,
    pub(super) start: U64,
}

pub(super) fn add_runs(runs: &[Run], frame: &mut Vec<u8>) {
    let runs = &runs[runs.len().saturating_sub(RUNS_MAX)..];
    frame.extend((runs.len() as u16).to_le_bytes());
    for run in runs {
        let entry = RunEntry { ballot: run.ballot.into(), start: run.start.into() };
        frame.extend(entry.as_bytes());
    }
}

pub(super) fn runs(bytes: &[u8]) -> Option<(Vec<Run>, &[u8])> {
    let (count, rest) = U16::read_from_prefix(bytes).ok()?;
    let count = usize::from(count.get());
    if count > RUNS_MAX {
        return None;
    }
    let (entries, rest) = <[RunEntry]>::ref_from_prefix_with_elems(rest, count).ok()?;
    let run = |entry: &RunEntry| {
        Some(Run { ballot: entry.ballot.ballot()?, start: bounded(entry.start)? })
    };
    let runs = entries.iter().map(run).collect::<Option<Vec<Run>>>()?;
    let ascends = |pair: &[Run]| pair[0].ballot < pair[1].ballot && pair[0].start <= pair[1].start;
    runs.windows(2).all(ascends).then_some((runs, rest))
}

pub(super) fn add_name(name: &str, frame: &mut Vec<u8>) {
    assert!(name.len() <= STORE_NAME_MAX, "a name that was checked");
    frame.push(name.len() as u8);
    frame.extend(name.as_bytes());
}

pub(super) fn name(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let length = usize::from(*length);
    if length > STORE_NAME_MAX {
        return None;
    }
    let (name, rest) = rest.split_at_checked(length)?;
    Some((std::str::from_utf8(name).ok()?, rest))
}

/// Messages in a frame, in the order of their sequences, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Records<'a>(&'a [u8]);

impl<'a> Records<'a> {
    /// No messages.
    pub const EMPTY: Self = Records(&[]);

    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (length, behind) = U32::read_from_prefix(rest).ok()?;
            (_, rest) = behind.split_at_checked(length.get() as usize)?;
        }
        Some(Self(bytes))
    }

    pub(super) const fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// The messages' bytes.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (length, behind) = U32::read_from_prefix(rest).ok()?;
            let (body, behind) = behind.split_at_checked(length.get() as usize)?;
            rest = behind;
            Some(body)
        })
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// Messages in a frame as [`Records`], each with the time at which it was written first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedRecords<'a>(Records<'a>);

impl<'a> TimedRecords<'a> {
    /// No messages.
    pub const EMPTY: Self = TimedRecords(Records::EMPTY);

    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let records = Records::read(bytes)?;
        records.iter().all(|record| record.len() >= size_of::<U64>()).then_some(Self(records))
    }

    pub(super) const fn bytes(self) -> &'a [u8] {
        self.0.bytes()
    }

    /// The messages' times, in nanoseconds since 1970, and their bytes.
    pub fn iter(self) -> impl Iterator<Item = (u64, &'a [u8])> {
        self.0.iter().filter_map(|record| {
            let (unix_ns, body) = U64::read_from_prefix(record).ok()?;
            Some((unix_ns.get(), body))
        })
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// Collects messages for a frame.
#[derive(Clone, Debug, Default)]
pub struct RecordsWriter(Vec<u8>);

impl RecordsWriter {
    /// Adds a message.
    ///
    /// # Panics
    /// If it is longer than 4 GiB.
    pub fn add(&mut self, body: &[u8]) {
        let length = u32::try_from(body.len()).expect("a message that a transport carried");
        self.0.extend(length.to_le_bytes());
        self.0.extend(body);
    }

    /// Bytes so far.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no message.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The messages.
    pub fn records(&self) -> Records<'_> {
        Records(&self.0)
    }
}

/// Collects messages with their times for a frame.
#[derive(Clone, Debug, Default)]
pub struct TimedRecordsWriter(RecordsWriter);

impl TimedRecordsWriter {
    /// Adds a message and its time, in nanoseconds since 1970.
    ///
    /// # Panics
    /// If it is longer than 4 GiB.
    pub fn add(&mut self, unix_ns: u64, body: &[u8]) {
        let RecordsWriter(bytes) = &mut self.0;
        let length = u32::try_from(size_of::<U64>() + body.len());
        bytes.extend(length.expect("a message that a transport carried").to_le_bytes());
        bytes.extend(unix_ns.to_le_bytes());
        bytes.extend(body);
    }

    /// Bytes so far.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no message.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The messages.
    pub fn records(&self) -> TimedRecords<'_> {
        TimedRecords(self.0.records())
    }
}
