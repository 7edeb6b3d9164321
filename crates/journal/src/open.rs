//! What every owner does first.

use crate::catalog::Catalog;
use crate::config::JournalConfig;
use crate::encoder::Encoder;
use crate::error::OpenError;
use crate::file_name;
use crate::recovery::{Recovery, contiguous_segments, write_clean_end};
use crate::recycler::Recycler;
use crate::segment::{Format, Segment, segment_numbers};
use crate::storage::{OpenMode, Storage, StorageError, StorageErrorKind, StorageResult};
use std::collections::VecDeque;

/// What opening found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The oldest record's sequence; 0 if there is none.
    pub first: u64,
    /// The last record's sequence; 0 if there never was one.
    pub last: u64,
    /// How many bytes of a torn end were cut off. None of them was ever said to be persisted.
    pub torn_bytes: u64,
}

/// A journal that was opened for writing, in parts.
#[derive(Debug)]
pub(crate) struct Opened<S: Storage> {
    pub(crate) lock: S::Lock,
    pub(crate) format: Format,
    pub(crate) encoder: Encoder,
    pub(crate) current: Option<Segment<S::File>>,
    pub(crate) spares: VecDeque<Segment<S::File>>,
    pub(crate) recycler: Recycler,
    /// The number of the next segment that is to be made.
    pub(crate) next_segment: u64,
    pub(crate) catalog: Catalog,
    pub(crate) recovered: Recovered,
}

impl<S: Storage> Opened<S> {
    /// Takes the directory, cleans up behind a crash, and finds the end.
    pub(crate) fn open(storage: &S, settings: &JournalConfig) -> Result<Self, OpenError> {
        settings.check()?;
        let lock = storage.lock()?;
        remove_loose(storage)?;
        let recycler = Recycler::new(settings.spare_segments, settings.segment_bytes);
        if segment_numbers(storage)?.is_empty() {
            let journal = random(storage)?;
            let format = Format { journal, segment_bytes: settings.segment_bytes };
            Segment::make(storage, &recycler, format, 1, &mut |_| true)?;
        }
        let segment_numbers = contiguous_segments(storage)?;
        let mut recovery = Recovery::new(storage, &segment_numbers);
        let mut catalog = Catalog::load(&mut recovery, &segment_numbers)?;
        let journal = recovery.open(segment_numbers[0])?.journal;
        let end = recovery.find_end()?;
        write_clean_end(storage, &end)?;
        let format = Format { journal, segment_bytes: settings.segment_bytes };
        let opened = |number| Segment::open(storage, number, OpenMode::Write);
        let behind = segment_numbers.iter().copied().filter(|number| *number > end.segment);
        let spares = spares(storage, format, behind.collect())?;
        let exists = segment_numbers.contains(&end.segment);
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

/// Opens the segments that are ready; those of another length than the new ones' are removed.
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
        // From the newest on, each one durably: a crash must not leave a gap.
        for number in segment_numbers.iter().rev() {
            storage.remove(&file_name::segment(*number))?;
            storage.sync_directory()?;
        }
    }
    Ok(spares)
}

/// Segments that were not finished, and files that wait to be used again, are no part of the
/// journal.
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
