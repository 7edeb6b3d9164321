//! Finds the end of a journal and tells a torn end from corruption. Used at opening, by
//! verification and by repair.

use crate::catalog::{Catalog, CatalogEntry};
use crate::error::{Corruption, CorruptionKind, OpenError};
use crate::file_name;
use crate::index::{Index, Mark};
use crate::read_buffer::ReadBuffer;
use crate::scanner::{RecordScanner, Step, header_at};
use crate::segment::{Segment, segment_numbers};
use crate::sequence_check::SequenceCheck;
use crate::storage::{OpenMode, Storage, StorageResult, StoredFile};
use crate::tail::{Tail, is_blank};
use core::ops::Range;
use lanecast_wire::journal::{KIND_ENTRY, RECORDS_OFFSET, RecordHeader};
use std::collections::VecDeque;

/// Bytes per copy step.
const COPY: usize = 1 << 20;

/// End of a journal.
#[derive(Debug)]
pub(crate) struct End {
    /// Segment of the next record; it may not exist yet.
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) sequence_check: SequenceCheck,
    /// Torn bytes behind the end, left by a crash.
    pub(crate) torn: Option<Range<u64>>,
    /// Records of the last segment that may be in the page cache only: segment number and byte
    /// range.
    pub(crate) unsynced: Option<(u64, Range<u64>)>,
    /// Indexes of the segments that were read.
    pub(crate) indexes: Vec<(u64, Index)>,
}

/// Numbers of all segments; an error if one is missing in between.
pub(crate) fn contiguous_segments<S: Storage>(storage: &S) -> Result<Vec<u64>, OpenError> {
    let segment_numbers = segment_numbers(storage)?;
    let gap = segment_numbers.windows(2).find(|pair| pair[0] + 1 != pair[1]);
    match gap {
        None => Ok(segment_numbers),
        Some(pair) => {
            let segment = pair[0] + 1;
            Err(OpenError::MissingSegment {
                segment,
                path: storage.path(&file_name::segment(segment)),
            })
        }
    }
}

/// Reads the segments of a journal from some segment to the end.
#[derive(Debug)]
pub(crate) struct Recovery<'a, S: Storage> {
    storage: &'a S,
    segment_numbers: &'a [u64],
    /// The journal's id, from the first segment opened.
    journal: Option<u64>,
    read_buffer: ReadBuffer,
    indexes: Vec<(u64, Index)>,
    /// Accepts files of a wrong length and reads the part that exists.
    any_length: bool,
}

impl<'a, S: Storage> Recovery<'a, S> {
    /// Over the segments with these numbers: at least one, without a gap.
    pub(crate) fn new(storage: &'a S, segment_numbers: &'a [u64]) -> Self {
        let (read_buffer, indexes) = (ReadBuffer::default(), Vec::new());
        Self { storage, segment_numbers, journal: None, read_buffer, indexes, any_length: false }
    }

    /// Accepts files of a wrong length: repair reads the part that exists.
    pub(crate) fn allow_any_length(self) -> Self {
        Self { any_length: true, ..self }
    }

    /// Opens a segment and checks that it belongs to the same journal as the others.
    pub(crate) fn open(&mut self, number: u64) -> Result<Segment<S::File>, OpenError> {
        let segment = Segment::open_any_length(self.storage, number, OpenMode::Read)?;
        if !self.any_length {
            segment.check_length(self.storage)?;
        }
        // The first segment opened decides which journal this is.
        if *self.journal.get_or_insert(segment.journal) != segment.journal {
            let path = self.storage.path(&file_name::segment(number));
            return Err(OpenError::ForeignSegment { segment: number, path });
        }
        Ok(segment)
    }

    /// Reads the first record of each segment and lists the segments that have one.
    pub(crate) fn catalog(&mut self) -> Result<Catalog, OpenError> {
        let mut entries = VecDeque::new();
        for number in self.segment_numbers {
            entries.extend(self.list(*number)?);
        }
        Ok(Catalog::new(self.segment_numbers, entries))
    }

    /// The segment's catalog entry; `None` if its first record is missing or damaged.
    pub(crate) fn list(&mut self, number: u64) -> Result<Option<CatalogEntry>, OpenError> {
        let segment = self.open(number)?;
        self.read_buffer.forget();
        let first = header_at(&mut self.read_buffer, &segment, RECORDS_OFFSET)?;
        Ok(first.ok().filter(|header| header.kind.get() == KIND_ENTRY).map(|header| CatalogEntry {
            number,
            bytes: segment.bytes,
            first: Mark::of(header, RECORDS_OFFSET),
            index: None,
        }))
    }

    /// Finds the end by reading the last used segment and the one before it.
    ///
    /// # Errors
    /// If durable records are missing or damaged, or the disk refuses.
    pub(crate) fn find_end(mut self) -> Result<End, OpenError> {
        // The segment before gives the sequence and checksum that the last one must continue.
        let start = self.last_used()?.saturating_sub(1);
        self.scan(start, |_| {})
    }

    /// Finds the end by reading every record; reports each to `show`.
    ///
    /// # Errors
    /// If durable records are missing or damaged, or the disk refuses.
    pub(crate) fn read_all(self, show: impl FnMut(ScanEvent<'_>)) -> Result<End, OpenError> {
        self.scan(0, show)
    }

    /// Position in `segment_numbers` of the last segment that is not blank; 0 if all are.
    fn last_used(&mut self) -> Result<usize, OpenError> {
        // Preallocated segments follow the last used one, so the search runs backwards.
        for place in (1..self.segment_numbers.len()).rev() {
            let segment = self.open(self.segment_numbers[place])?;
            if !is_blank(&mut self.read_buffer, &segment)? {
                return Ok(place);
            }
        }
        Ok(0)
    }

    fn scan(mut self, start: usize, mut show: impl FnMut(ScanEvent<'_>)) -> Result<End, OpenError> {
        let mut scanner =
            RecordScanner::new(SequenceCheck::at_segment(self.segment_numbers[start]));
        let mut unsynced = None;
        for place in start..self.segment_numbers.len() {
            let segment = self.open(self.segment_numbers[place])?;
            let (mut index, mut last) = (Index::default(), None);
            scanner.offset = RECORDS_OFFSET;
            self.read_buffer.forget();
            show(ScanEvent::Segment(&Header::of(&segment)));
            let stopped = loop {
                match scanner.step(&mut self.read_buffer, &segment)? {
                    Step::Record(at) => {
                        let (header, body) = self.read_buffer.record(at);
                        index.note(Mark::of(header, at));
                        last = Some(header.durable());
                        show(ScanEvent::Record(header, at, body));
                    }
                    Step::Sealed => {
                        show(ScanEvent::Seal);
                        break None;
                    }
                    Step::Stopped(kind) => {
                        let torn = self.torn_end(place, &segment, &scanner)?;
                        if torn.is_none() && self.is_written_by_now(&segment, scanner)? {
                            continue;
                        }
                        break Some((kind, torn));
                    }
                }
            };
            // Records after the last one known durable may be in the page cache only.
            if let Some(durable) = last {
                let from =
                    index.before_sequence(durable + 1).map_or(RECORDS_OFFSET, |it| it.mark.offset);
                unsynced = Some((segment.number, from..scanner.offset));
            }
            self.indexes.push((segment.number, index));
            let Some((kind, torn)) = stopped else { continue };
            let sequence_check = scanner.sequence_check;
            let Some(tail) = torn else {
                let (storage, number) = (self.storage, segment.number);
                let damage = corruption(storage, number, &scanner, sequence_check.next, kind);
                return Err(damage.into());
            };
            return Ok(End {
                segment: segment.number,
                offset: scanner.offset,
                sequence_check,
                torn: tail.end.map(|end| scanner.offset..end),
                unsynced,
                indexes: self.indexes,
            });
        }
        // All segments are sealed: the next record opens a new one.
        let segment = self.segment_numbers[self.segment_numbers.len() - 1] + 1;
        let (offset, sequence_check) = (RECORDS_OFFSET, scanner.sequence_check);
        Ok(End { segment, offset, sequence_check, torn: None, unsynced, indexes: self.indexes })
    }

    /// The bytes behind the last valid record, if they are a torn write; `None` if they prove that
    /// the next record was durable.
    fn torn_end(
        &mut self,
        place: usize,
        segment: &Segment<S::File>,
        scanner: &RecordScanner,
    ) -> Result<Option<Tail>, OpenError> {
        let Some(expected) = scanner.sequence_check.next else { return Ok(None) };
        // A reader beside a writer may have opened a file that has since become another segment.
        // The writer renames before it reuses, so opening the name again detects that.
        self.open(segment.number)?;
        let tail = Tail::scan(&mut self.read_buffer, segment, scanner.offset)?;
        // A later header says that this record was durable before it was written.
        if tail.durable >= Some(expected) {
            return Ok(None);
        }
        // Records behind a gap prove that the records in it were durable.
        for number in &self.segment_numbers[place + 1..] {
            let later = self.open(*number)?;
            if !is_blank(&mut self.read_buffer, &later)? {
                return Ok(None);
            }
        }
        Ok(Some(tail))
    }

    /// Whether the record that was missing is there after all: a living writer may have written it,
    /// and those that prove it durable, since it was looked for.
    fn is_written_by_now(
        &mut self,
        segment: &Segment<S::File>,
        mut scanner: RecordScanner,
    ) -> StorageResult<bool> {
        self.read_buffer.forget();
        let step = scanner.step(&mut self.read_buffer, segment)?;
        self.read_buffer.forget();
        Ok(!matches!(step, Step::Stopped(_)))
    }
}

/// Contents of a segment's header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    pub(crate) created_unix_ns: u64,
    pub(crate) has_damaged_header: bool,
}

impl Header {
    pub(crate) fn of<F>(segment: &Segment<F>) -> Self {
        let Segment { number, bytes, created_unix_ns, has_damaged_header, .. } = *segment;
        Self { number, bytes, created_unix_ns, has_damaged_header }
    }
}

/// Progress reported by [`Recovery::read_all`].
#[derive(Debug)]
pub(crate) enum ScanEvent<'a> {
    /// Start of a segment.
    Segment(&'a Header),
    /// A record, its offset and its body.
    Record(&'a RecordHeader, u64, &'a [u8]),
    /// The segment's seal.
    Seal,
}

/// Corruption at the scanner's position.
pub(crate) fn corruption<S: Storage>(
    storage: &S,
    segment: u64,
    scanner: &RecordScanner,
    sequence: Option<u64>,
    kind: CorruptionKind,
) -> Corruption {
    let (path, directory) = (storage.path(&file_name::segment(segment)), storage.path(""));
    Corruption { segment, path, offset: scanner.offset, sequence, kind, directory }
}

/// Makes the end durable: clears torn bytes and writes unsynchronized records again.
pub(crate) fn write_clean_end<S: Storage>(storage: &S, end: &End) -> Result<(), OpenError> {
    // Cleared first: a crash in between leaves a journal that recovers the same way.
    if let Some(range) = &end.torn {
        let segment = Segment::open(storage, end.segment, OpenMode::Write)?;
        blank(&segment.file, range.clone())?;
    }
    if let Some((number, range)) = &end.unsynced {
        // After a failed synchronization the kernel may hold dirty data in memory and mark it
        // clean: only a second write brings it to the disk.
        let segment = Segment::open(storage, *number, OpenMode::Write)?;
        let mut bytes = vec![0; COPY];
        let mut offset = range.start;
        while offset < range.end {
            let length = (range.end - offset).min(COPY as u64) as usize;
            let filled = segment.file.fill_at(&mut bytes[..length], offset)?;
            segment.file.write_all_at(&bytes[..filled], offset)?;
            offset += length as u64;
        }
        segment.file.sync_data()?;
    }
    Ok(())
}

/// Overwrites `range` with zeros and synchronizes.
pub(crate) fn blank<F: StoredFile>(file: &F, range: Range<u64>) -> StorageResult<()> {
    let zeros = vec![0; COPY];
    let mut offset = range.start;
    while offset < range.end {
        let length = (range.end - offset).min(COPY as u64);
        file.write_all_at(&zeros[..length as usize], offset)?;
        offset += length;
    }
    file.sync_data()
}
