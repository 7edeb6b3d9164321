//! What is in a journal and whether it is right, for people and tools.

use crate::error::OpenError;
use crate::name;
use crate::recovery::{End, Recovery, Seen, complete};
use crate::storage::Storage;
use lanecast_wire::journal::RECORD_HEADER;

/// What is in a segment, as far as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentSurvey {
    /// Its number.
    pub segment: u64,
    /// The file.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// How much of that has been written.
    pub used_bytes: u64,
    /// When it was made, in nanoseconds since 1970.
    pub created_unix_ns: u64,
    /// One copy of its header is damaged; the other is read instead.
    pub is_halved: bool,
    /// The journal goes on in the next one.
    pub is_sealed: bool,
    /// How many records it has.
    pub records: u64,
    /// The length of all their bodies together.
    pub body_bytes: u64,
    /// The first one's sequence and time; `None` if it has none.
    pub first: Option<(u64, u64)>,
    /// The last one's sequence and time.
    pub last: Option<(u64, u64)>,
}

/// Whether a journal is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Whole,
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
pub struct Survey {
    /// The segments, in order; those behind damage were not read.
    pub segments: Vec<SegmentSurvey>,
    /// Whether it is right.
    pub verdict: Verdict,
}

impl Survey {
    /// Reads every record of the journal in `storage`; `tell` hears after each segment how many
    /// of how many were read.
    ///
    /// # Errors
    /// If there is no journal, or the disk refuses. Damage is a verdict, not an error.
    pub fn read<S: Storage>(
        storage: &S,
        mut tell: impl FnMut(usize, usize),
    ) -> Result<Self, OpenError> {
        let mut segments: Vec<SegmentSurvey> = Vec::new();
        let found = complete(storage).and_then(|numbers| {
            if numbers.is_empty() {
                return Err(OpenError::Absent { directory: storage.path("") });
            }
            Recovery::new(storage, &numbers).read_all(|seen| {
                if matches!(seen, Seen::Segment(_)) {
                    tell(segments.len(), numbers.len());
                }
                note(&mut segments, storage, seen);
            })
        });
        let verdict = match found {
            Ok(end) => verdict(storage, &end),
            Err(error @ (OpenError::Storage(_) | OpenError::Absent { .. })) => return Err(error),
            Err(error) => Verdict::Corrupt(error),
        };
        Ok(Self { segments, verdict })
    }
}

fn verdict<S: Storage>(storage: &S, end: &End) -> Verdict {
    match &end.torn {
        None => Verdict::Whole,
        Some(range) => Verdict::Torn {
            path: storage.path(&name::segment(end.segment)),
            offset: range.start,
            bytes: range.end - range.start,
        },
    }
}

fn note<S: Storage>(segments: &mut Vec<SegmentSurvey>, storage: &S, seen: Seen<'_>) {
    if let Seen::Segment(header) = seen {
        segments.push(SegmentSurvey {
            segment: header.number,
            path: storage.path(&name::segment(header.number)),
            bytes: header.bytes,
            created_unix_ns: header.created_unix_ns,
            is_halved: header.is_halved,
            ..SegmentSurvey::default()
        });
    }
    let Some(segment) = segments.last_mut() else { return };
    match seen {
        Seen::Segment(_) => {}
        Seen::Record(header, offset, body) => {
            let at = (header.sequence.get(), header.unix_ns.get());
            segment.first.get_or_insert(at);
            segment.last = Some(at);
            segment.records += 1;
            segment.body_bytes += body.len() as u64;
            segment.used_bytes = offset + header.bytes();
        }
        Seen::Seal => {
            segment.is_sealed = true;
            segment.used_bytes += RECORD_HEADER;
        }
    }
}
