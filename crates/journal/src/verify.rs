//! What is in a journal and whether it is right, for people and tools.

use crate::error::OpenError;
use crate::file_name;
use crate::recovery::{End, Header, Recovery, ScanEvent, contiguous_segments};
use crate::storage::Storage;
use lanecast_wire::journal::RECORD_HEADER;

/// What is in a segment, as far as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentReport {
    /// Its number.
    pub segment: u64,
    /// The file.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// How much of that has been written; `None` if it was not read.
    pub used_bytes: Option<u64>,
    /// When it was made, in nanoseconds since 1970.
    pub created_unix_ns: u64,
    /// One copy of its header is damaged; the other is read instead.
    pub has_damaged_header: bool,
    /// The journal goes on in the next one.
    pub is_sealed: bool,
    /// How many records it has.
    pub records: u64,
    /// The length of all their bodies together; `None` if they were not read.
    pub body_bytes: Option<u64>,
    /// The first one's sequence; 0 if there is none.
    pub first: u64,
    /// When that was appended, in nanoseconds since 1970; 0 if there is none.
    pub first_unix_ns: u64,
    /// The last one's sequence; 0 if there is none.
    pub last: u64,
}

impl SegmentReport {
    fn new<S: Storage>(storage: &S, header: &Header) -> Self {
        Self {
            segment: header.number,
            path: storage.path(&file_name::segment(header.number)),
            bytes: header.bytes,
            created_unix_ns: header.created_unix_ns,
            has_damaged_header: header.has_damaged_header,
            ..Self::default()
        }
    }
}

/// Whether a journal is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Intact,
    /// It is, up to what a crash has left at the end: opening it for writing cuts that off. While
    /// its owner lives it may as well be a record on its way.
    Torn {
        /// The file.
        path: String,
        /// Where the end begins.
        offset: u64,
        /// How long it is.
        bytes: u64,
    },
    /// It is not.
    Corrupt(OpenError),
}

/// What is in a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalReport {
    /// The segments, in order; those behind damage were not read.
    pub segments: Vec<SegmentReport>,
    /// Whether it is right.
    pub verdict: Verdict,
}

impl JournalReport {
    /// Reads every record of the journal in `storage`; `tell` hears after each segment how many
    /// of how many were read.
    ///
    /// # Errors
    /// If there is no journal, or the disk refuses. Damage is a verdict, not an error.
    pub fn verify<S: Storage>(
        storage: &S,
        mut tell: impl FnMut(usize, usize),
    ) -> Result<Self, OpenError> {
        let mut segments: Vec<SegmentReport> = Vec::new();
        let found = contiguous_segments(storage).and_then(|segment_numbers| {
            if segment_numbers.is_empty() {
                return Err(OpenError::NoJournal { directory: storage.path("") });
            }
            Recovery::new(storage, &segment_numbers).read_all(|seen| {
                if matches!(seen, ScanEvent::Segment(_)) {
                    tell(segments.len(), segment_numbers.len());
                }
                note(&mut segments, storage, seen);
            })
        });
        Ok(Self { segments, verdict: verdict(storage, found.as_ref())? })
    }

    /// Reads headers, the first record of each segment, and the last records only: what is in a
    /// journal of any size, at once.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn inspect<S: Storage>(storage: &S) -> Result<Self, OpenError> {
        let mut segments: Vec<SegmentReport> = Vec::new();
        let found = inspect(storage, &mut segments);
        Ok(Self { segments, verdict: verdict(storage, found.as_ref())? })
    }
}

fn inspect<S: Storage>(storage: &S, segments: &mut Vec<SegmentReport>) -> Result<End, OpenError> {
    let segment_numbers = contiguous_segments(storage)?;
    if segment_numbers.is_empty() {
        return Err(OpenError::NoJournal { directory: storage.path("") });
    }
    let mut recovery = Recovery::new(storage, &segment_numbers);
    for number in &segment_numbers {
        let header = Header::of(&recovery.open(*number)?);
        let mut report = SegmentReport::new(storage, &header);
        if let Some(entry) = recovery.list(*number)? {
            let first = entry.first;
            if let Some(before) = segments.last_mut().filter(|before| before.first > 0) {
                before.last = first.sequence.saturating_sub(1);
                before.records = first.sequence.saturating_sub(before.first);
                before.is_sealed = true;
            }
            (report.first, report.first_unix_ns) = (first.sequence, first.unix_ns);
        }
        segments.push(report);
    }
    let end = recovery.find_end()?;
    if let Some(newest) = segments.iter_mut().rev().find(|segment| segment.first > 0) {
        newest.last = end.sequence_check.last();
        newest.records = (newest.last + 1).saturating_sub(newest.first);
        newest.is_sealed = newest.segment != end.segment;
        newest.used_bytes = (newest.segment == end.segment).then_some(end.offset);
    }
    Ok(end)
}

fn verdict<S: Storage>(storage: &S, found: Result<&End, &OpenError>) -> Result<Verdict, OpenError> {
    let end = match found {
        Ok(end) => end,
        Err(error @ (OpenError::Storage(_) | OpenError::NoJournal { .. })) => {
            return Err(error.clone());
        }
        Err(error) => return Ok(Verdict::Corrupt(error.clone())),
    };
    Ok(match &end.torn {
        None => Verdict::Intact,
        Some(range) => Verdict::Torn {
            path: storage.path(&file_name::segment(end.segment)),
            offset: range.start,
            bytes: range.end - range.start,
        },
    })
}

fn note<S: Storage>(segments: &mut Vec<SegmentReport>, storage: &S, seen: ScanEvent<'_>) {
    if let ScanEvent::Segment(header) = seen {
        segments.push(SegmentReport::new(storage, header));
    }
    let Some(segment) = segments.last_mut() else { return };
    match seen {
        ScanEvent::Segment(_) => {}
        ScanEvent::Record(header, offset, body) => {
            let at = (header.sequence.get(), header.unix_ns.get());
            if segment.records == 0 {
                (segment.first, segment.first_unix_ns) = at;
            }
            segment.last = at.0;
            segment.records += 1;
            *segment.body_bytes.get_or_insert(0) += body.len() as u64;
            segment.used_bytes = Some(offset + header.bytes());
        }
        ScanEvent::Seal => {
            segment.is_sealed = true;
            segment.used_bytes = segment.used_bytes.map(|used| used + RECORD_HEADER);
        }
    }
}
