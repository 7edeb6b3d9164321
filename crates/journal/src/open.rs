//! Opening a journal for writing: lock, clean up after a crash, find the end. Used by
//! [`Journal`](crate::Journal) and [`Log`](crate::Log).

use crate::catalog::Catalog;
use crate::config::JournalConfig;
use crate::encoder::Encoder;
use crate::error::OpenError;
use crate::file_name;
use crate::index_file;
use crate::recovery::{Recovery, contiguous_segments, write_clean_end};
use crate::recycler::Recycler;
use crate::segment::{Format, Segment, segment_numbers};
use crate::storage::{Fill, OpenMode, Storage, StorageError, StorageErrorKind, StorageResult};
use std::collections::VecDeque;

/// Result of the recovery at opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Sequence of the oldest record; 0 if there is none.
    pub first: u64,
    /// Sequence of the last record; 0 if there never was one.
    pub last: u64,
    /// Length of the torn end that was cut off. None of it was ever reported as persisted.
    pub torn_bytes: u64,
}

/// The parts of a journal opened for writing.
#[derive(Debug)]
pub(crate) struct Opened<S: Storage> {
    pub(crate) lock: S::Lock,
    pub(crate) format: Format,
    pub(crate) encoder: Encoder,
    pub(crate) current: Option<Segment<S::File>>,
    pub(crate) spares: VecDeque<Segment<S::File>>,
    pub(crate) recycler: Recycler,
    /// Number of the next segment to create.
    pub(crate) next_segment: u64,
    pub(crate) catalog: Catalog,
    pub(crate) recovered: Recovered,
}

impl<S: Storage> Opened<S> {
    /// Locks the directory, removes leftovers of a crash, finds the end and makes it clean.
    pub(crate) fn open(storage: &S, settings: &JournalConfig) -> Result<Self, OpenError> {
        settings.check()?;
        let lock = storage.lock()?;
        remove_loose(storage)?;
        let recycler = Recycler::new(settings.spare_segments, settings.segment_bytes);
        if segment_numbers(storage)?.is_empty() {
            let journal = random(storage)?;
            let format = Format { journal, segment_bytes: settings.segment_bytes };
            Segment::make(storage, &recycler, format, 1, &mut |_| Fill::AtOnce)?;
        }
        let segment_numbers = contiguous_segments(storage)?;
        // The process before may have died, or failed, between a rename and its synchronization:
        // no record is written to a segment whose name a crash takes away.
        storage.sync_directory()?;
        let mut recovery = Recovery::new(storage, &segment_numbers);
        let mut catalog = recovery.catalog()?;
        let journal = recovery.open(segment_numbers[0])?.journal;
        let end = recovery.find_end()?;
        write_clean_end(storage, &end)?;
        let sealed: Vec<u64> =
            segment_numbers.iter().copied().filter(|number| *number < end.segment).collect();
        index_file::remove_loose(storage, &sealed)?;
        let format = Format { journal, segment_bytes: settings.segment_bytes };
        let opened = |number| Segment::open(storage, number, OpenMode::Write);
        let behind = segment_numbers.iter().copied().filter(|number| *number > end.segment);
        let spares = spares(storage, format, behind.collect())?;
        let exists = segment_numbers.contains(&end.segment);
        // The seal may be durable and the next segment not created yet.
        let current = exists.then(|| opened(end.segment)).transpose()?;
        let bytes = current.as_ref().map_or(format.segment_bytes, |segment| segment.bytes);
        let encoder = Encoder::new(format, &end.sequence_check, end.segment, bytes, end.offset);
        catalog.cut(end.sequence_check.last());
        for (number, index) in end.indexes {
            catalog.set_index(number, index);
        }
        let recovered = Recovered {
            first: catalog.oldest().map_or(0, |oldest| oldest.first.sequence),
            last: end.sequence_check.last(),
            torn_bytes: end.torn.map_or(0, |range| range.end - range.start),
        };
        let next_segment = end.segment + u64::from(exists) + spares.len() as u64;
        Ok(Self {
            lock,
            format,
            encoder,
            current,
            spares,
            recycler,
            next_segment,
            catalog,
            recovered,
        })
    }
}

/// Opens the spare segments behind the end. Spares of another length than `segment_bytes` are
/// removed.
fn spares<S: Storage>(
    storage: &S,
    format: Format,
    segment_numbers: Vec<u64>,
) -> Result<VecDeque<Segment<S::File>>, OpenError> {
    let mut spares = VecDeque::new();
    for number in &segment_numbers {
        spares.push_back(Segment::open(storage, *number, OpenMode::Write)?);
    }
    if spares.iter().any(|spare| spare.bytes != format.segment_bytes) {
        spares.clear();
        // Newest first, each removal durable: a crash must not leave a gap.
        for number in segment_numbers.iter().rev() {
            storage.remove(&file_name::segment(*number))?;
            storage.sync_directory()?;
        }
    }
    Ok(spares)
}

/// Removes unfinished segments and files that waited to be recycled.
fn remove_loose<S: Storage>(storage: &S) -> StorageResult<()> {
    for name in storage.list()?.iter().filter(|name| file_name::is_unlinked_segment(name)) {
        storage.remove(name)?;
    }
    Ok(())
}

fn random<S: Storage>(storage: &S) -> StorageResult<u64> {
    lanecast_os::process::random().map_err(|error| StorageError {
        operation: "draw a number for",
        path: storage.path(""),
        kind: StorageErrorKind::Other,
        message: error.to_string(),
    })
}
