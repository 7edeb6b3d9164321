//! A segment file: creation and opening.

use crate::checksum::{Seed, of_segment};
use crate::clock::unix_ns;
use crate::error::OpenError;
use crate::file_name;
use crate::recycler::Recycler;
use crate::storage::{OpenMode, Storage, StorageResult, StoredFile, Throttle};
use lanecast_wire::journal::{FLAG_RECYCLED, HEADER_OFFSETS, SegmentError, SegmentHeader};
use zerocopy::IntoBytes;

/// Properties that all segments of a journal share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    /// Id of the journal.
    pub(crate) journal: u64,
    /// Length of new segments.
    pub(crate) segment_bytes: u64,
}

/// An open segment.
#[derive(Debug)]
pub(crate) struct Segment<F> {
    pub(crate) file: F,
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    pub(crate) journal: u64,
    /// Seed of its record checksums.
    pub(crate) seed: Seed,
    pub(crate) created_unix_ns: u64,
    /// One of the two headers is damaged.
    pub(crate) has_damaged_header: bool,
    /// The file's length differs from the header's.
    pub(crate) has_wrong_length: bool,
    /// The file was another segment before and still holds its bytes.
    pub(crate) is_recycled: bool,
}

impl<F: StoredFile> Segment<F> {
    /// Creates a segment, durably and atomically: it appears under its name when it is complete.
    ///
    /// Reuses a file of `recycler` if there is one; otherwise preallocates a new one, paced by
    /// `throttle`.
    pub(crate) fn make<S: Storage<File = F>>(
        storage: &S,
        recycler: &Recycler,
        format: Format,
        number: u64,
        throttle: Throttle<'_>,
    ) -> StorageResult<Self> {
        let mut header =
            SegmentHeader::new(format.journal, number, format.segment_bytes, unix_ns());
        let recycled = recycler.take();
        header.flags = if recycled.is_some() { FLAG_RECYCLED } else { 0 }.into();
        header.crc = of_segment(&header).into();
        let (name, file) = match recycled {
            Some(name) => (name.clone(), storage.open(&name, OpenMode::Write)),
            None => {
                let name = file_name::unfinished(number);
                (name.clone(), create(storage, &name, format.segment_bytes, throttle))
            }
        };
        let written = file.and_then(|file| {
            // Two copies of the header, a page apart: one torn page leaves the other valid.
            for offset in HEADER_OFFSETS {
                file.write_all_at(header.as_bytes(), offset)?;
            }
            file.sync_data()?;
            Ok(file)
        });
        let file = written.inspect_err(|_| {
            // Free the space at once; if this fails, the next opening does it.
            let _ = storage.remove(&name);
        })?;
        // The rename publishes the segment; everything before it is durable.
        storage.rename(&name, &file_name::segment(number))?;
        storage.sync_directory()?;
        Ok(Self::new(file, &header, false))
    }

    fn new(file: F, header: &SegmentHeader, has_damaged_header: bool) -> Self {
        let (journal, number) = (header.journal.get(), header.segment.get());
        Self {
            file,
            number,
            bytes: header.segment_bytes.get(),
            journal,
            seed: Seed::new(journal, number),
            created_unix_ns: header.created_unix_ns.get(),
            has_damaged_header,
            has_wrong_length: false,
            is_recycled: header.flags.get() & FLAG_RECYCLED != 0,
        }
    }

    /// Opens a segment and checks its header and length.
    pub(crate) fn open<S: Storage<File = F>>(
        storage: &S,
        number: u64,
        mode: OpenMode,
    ) -> Result<Self, OpenError> {
        let segment = Self::open_any_length(storage, number, mode)?;
        segment.check_length(storage)?;
        Ok(segment)
    }

    /// Checks the file's length against the header.
    pub(crate) fn check_length<S: Storage<File = F>>(&self, storage: &S) -> Result<(), OpenError> {
        if !self.has_wrong_length {
            return Ok(());
        }
        let reason = SegmentError::Length { found: self.file.length()?, expected: self.bytes };
        let path = storage.path(&file_name::segment(self.number));
        Err(OpenError::InvalidSegment { segment: self.number, path, reason })
    }

    /// Readable length: the header's, or the file's if that is shorter.
    pub(crate) fn readable(&self) -> StorageResult<u64> {
        let bytes = self.bytes;
        if self.has_wrong_length {
            self.file.length().map(|length| length.min(bytes))
        } else {
            Ok(bytes)
        }
    }

    /// Opens a segment of any file length and checks its header.
    pub(crate) fn open_any_length<S: Storage<File = F>>(
        storage: &S,
        number: u64,
        mode: OpenMode,
    ) -> Result<Self, OpenError> {
        let name = file_name::segment(number);
        let refused = |reason| OpenError::InvalidSegment {
            segment: number,
            path: storage.path(&name),
            reason,
        };
        let file = storage.open(&name, mode)?;
        // Either copy is enough.
        let copies =
            [read_header(&file, HEADER_OFFSETS[0])?, read_header(&file, HEADER_OFFSETS[1])?];
        let header = match copies {
            [Ok(header), _] | [_, Ok(header)] => header,
            [Err(reason), _] => return Err(refused(reason)),
        };
        // A renamed file would pass its own checksums.
        let found = header.segment.get();
        if found != number {
            return Err(refused(SegmentError::Number { found }));
        }
        // Repair opens such files and reads the part that exists.
        let has_wrong_length = file.length()? != header.segment_bytes.get();
        let has_damaged_header = copies.iter().any(Result::is_err);
        Ok(Self { has_wrong_length, ..Self::new(file, &header, has_damaged_header) })
    }

    /// The segment's header, with no checksum set.
    pub(crate) fn header(&self) -> SegmentHeader {
        let Self { journal, number, bytes, created_unix_ns, is_recycled, .. } = *self;
        let mut header = SegmentHeader::new(journal, number, bytes, created_unix_ns);
        header.flags = if is_recycled { FLAG_RECYCLED } else { 0 }.into();
        header
    }
}

fn create<S: Storage>(
    storage: &S,
    name: &str,
    bytes: u64,
    throttle: Throttle<'_>,
) -> StorageResult<S::File> {
    let file = storage.create(name)?;
    // The caller removes the file after a failure.
    file.preallocate(bytes, throttle)?;
    Ok(file)
}

fn read_header<F: StoredFile>(
    file: &F,
    offset: u64,
) -> StorageResult<Result<SegmentHeader, SegmentError>> {
    let mut bytes = [0; size_of::<SegmentHeader>()];
    let filled = file.fill_at(&mut bytes, offset)?;
    Ok(SegmentHeader::read(&bytes[..filled]).and_then(|header| {
        let is_true = of_segment(&header) == header.crc.get();
        if is_true { Ok(header) } else { Err(SegmentError::Damaged) }
    }))
}

/// Numbers of the existing segments, in order.
pub(crate) fn segment_numbers<S: Storage>(storage: &S) -> StorageResult<Vec<u64>> {
    let mut segment_numbers: Vec<u64> =
        storage.list()?.iter().filter_map(|n| file_name::number(n)).collect();
    segment_numbers.sort_unstable();
    Ok(segment_numbers)
}
