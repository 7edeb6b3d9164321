//! What every owner does first.

use crate::catalog::Catalog;
use crate::encoder::Encoder;
use crate::error::OpenError;
use crate::name;
use crate::recovery::{Recovery, complete, settle};
use crate::reserve::Reserve;
use crate::segment::{Segment, Shape, numbers};
use crate::settings::Settings;
use crate::storage::{Fault, Mode, Outcome, Storage, StorageError};
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
    pub(crate) ownership: S::Ownership,
    pub(crate) shape: Shape,
    pub(crate) encoder: Encoder,
    pub(crate) current: Option<Segment<S::File>>,
    pub(crate) spares: VecDeque<Segment<S::File>>,
    pub(crate) reserve: Reserve,
    /// The number of the next segment that is to be made.
    pub(crate) next_segment: u64,
    pub(crate) catalog: Catalog,
    pub(crate) recovered: Recovered,
}

impl<S: Storage> Opened<S> {
    /// Takes the directory, cleans up behind a crash, and finds the end.
    pub(crate) fn open(storage: &S, settings: &Settings) -> Result<Self, OpenError> {
        settings.check()?;
        let ownership = storage.own()?;
        remove_loose(storage)?;
        let reserve = Reserve::new(settings.spares, settings.segment_bytes);
        if numbers(storage)?.is_empty() {
            let journal = random(storage)?;
            let shape = Shape { journal, segment_bytes: settings.segment_bytes };
            Segment::make(storage, &reserve, shape, 1, &mut |_| true)?;
        }
        let numbers = complete(storage)?;
        let mut recovery = Recovery::new(storage, &numbers);
        let mut catalog = Catalog::load(&mut recovery, &numbers)?;
        let journal = recovery.open(numbers[0])?.journal;
        let end = recovery.find_end()?;
        settle(storage, &end)?;
        let shape = Shape { journal, segment_bytes: settings.segment_bytes };
        let opened = |number| Segment::open(storage, number, Mode::Write);
        let behind = numbers.iter().copied().filter(|number| *number > end.segment);
        let spares = spares(storage, shape, behind.collect())?;
        let exists = numbers.contains(&end.segment);
        let current = exists.then(|| opened(end.segment)).transpose()?;
        let bytes = current.as_ref().map_or(shape.segment_bytes, |segment| segment.bytes);
        let encoder = Encoder::new(shape, &end.chain, end.segment, bytes, end.offset);
        catalog.cut(end.chain.last());
        for (number, index) in end.indexes {
            catalog.learn(number, index);
        }
        let recovered = Recovered {
            first: catalog.oldest().map_or(0, |oldest| oldest.first.sequence),
            last: end.chain.last(),
            torn_bytes: end.torn.map_or(0, |range| range.end - range.start),
        };
        let next_segment = end.segment + u64::from(exists) + spares.len() as u64;
        Ok(Self {
            ownership,
            shape,
            encoder,
            current,
            spares,
            reserve,
            next_segment,
            catalog,
            recovered,
        })
    }
}

/// Opens the segments that are ready; those of another length than the new ones' are removed.
fn spares<S: Storage>(
    storage: &S,
    shape: Shape,
    numbers: Vec<u64>,
) -> Result<VecDeque<Segment<S::File>>, OpenError> {
    let mut spares = VecDeque::new();
    for number in &numbers {
        spares.push_back(Segment::open(storage, *number, Mode::Write)?);
    }
    if spares.iter().any(|spare| spare.bytes != shape.segment_bytes) {
        spares.clear();
        // From the newest on, each one durably: a crash must not leave a gap.
        for number in numbers.iter().rev() {
            storage.remove(&name::segment(*number))?;
            storage.sync_directory()?;
        }
    }
    Ok(spares)
}

/// Segments that were not finished, and files that wait to be used again, are no part of the
/// journal.
fn remove_loose<S: Storage>(storage: &S) -> Outcome<()> {
    for name in storage.list()?.iter().filter(|name| name::is_no_segment_yet(name)) {
        storage.remove(name)?;
    }
    Ok(())
}

fn random<S: Storage>(storage: &S) -> Outcome<u64> {
    lanecast_os::process::random().map_err(|error| StorageError {
        act: "draw a number for",
        path: storage.path(""),
        fault: Fault::Other,
        why: error.to_string(),
    })
}
