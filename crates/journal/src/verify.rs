//! Reports about a journal, for people and tools: `inspect` reads headers, `verify` every record.

use crate::error::OpenError;
use crate::file_name;
use crate::recovery::{End, Header, Recovery, ScanEvent, contiguous_segments};
use crate::storage::Storage;
use lanecast_wire::journal::RECORD_HEADER;

/// Contents of a segment, as far as they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentReport {
    /// Number.
    pub segment: u64,
    /// Path of the file.
    pub path: String,
    /// Length of the file.
    pub bytes: u64,
    /// Bytes in use; `None` if not read.
    pub used_bytes: Option<u64>,
    /// Time of creation, in nanoseconds since 1970.
    pub created_unix_ns: u64,
    /// One of its two headers is damaged.
    pub has_damaged_header: bool,
    /// Complete: the journal continues in the next segment.
    pub is_sealed: bool,
    /// Number of records.
    pub records: u64,
    /// Total length of the bodies; `None` if not read.
    pub body_bytes: Option<u64>,
    /// Sequence of the first record; 0 if there is none.
    pub first: u64,
    /// Time of the first record, in nanoseconds since 1970; 0 if there is none.
    pub first_unix_ns: u64,
    /// Sequence of the last record; 0 if there is none.
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

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All records are valid.
    Intact,
    /// Valid, with torn bytes at the end, which opening the journal for writing cuts off. Beside a
    /// living writer this may be a record being written.
    Torn {
        /// Path of the file.
        path: String,
        /// Offset of the torn bytes.
        offset: u64,
        /// Length of the torn bytes.
        bytes: u64,
    },
    /// Durable records are missing or damaged.
    Corrupt(OpenError),
}

/// Contents and state of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalReport {
    /// Segments, in order; those behind damage were not read.
    pub segments: Vec<SegmentReport>,
    /// Result of the check.
    pub verdict: Verdict,
}

impl JournalReport {
    /// Reads and checks every record. `progress` is called after each segment with the number of
    /// segments read and their total.
    ///
    /// # Errors
    /// If there is no journal, or the disk refuses. Damage is a verdict, not an error.
    pub fn verify<S: Storage>(
        storage: &S,
        mut progress: impl FnMut(usize, usize),
    ) -> Result<Self, OpenError> {
        let mut segments: Vec<SegmentReport> = Vec::new();
        let found = contiguous_segments(storage).and_then(|segment_numbers| {
            if segment_numbers.is_empty() {
                return Err(OpenError::NoJournal { directory: storage.path("") });
            }
            Recovery::new(storage, &segment_numbers).read_all(|seen| {
                if matches!(seen, ScanEvent::Segment(_)) {
                    progress(segments.len(), segment_numbers.len());
                }
                note(&mut segments, storage, seen);
            })
        });
        Ok(Self { segments, verdict: verdict(storage, found.as_ref())? })
    }

    /// Reads the headers, the first record of each segment and the last records only: fast for a
    /// journal of any size.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
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
                // Records in the next segment imply a seal in this one.
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
        // Not a statement about the journal.
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
