//! Index files: one beside each sealed segment. The journal's owner writes them when a segment is
//! complete, on the thread that applies retention; a search reads them. A missing or damaged one
//! is made anew from its segment, so none is ever synchronized.

use crate::error::ReadError;
use crate::file_name;
use crate::index::{Index, Mark};
use crate::lock::lock;
use crate::read_buffer::ReadBuffer;
use crate::scanner::{RecordScanner, Step};
use crate::segment::Segment;
use crate::sequence_check::SequenceCheck;
use crate::start::Source;
use crate::storage::{OpenMode, Storage, StorageResult, StoredFile};
use lanecast_wire::journal::{INDEX_MARKS_MAX, IndexHeader, IndexMark};

/// The longest index file, in bytes.
const LONGEST: u64 =
    size_of::<IndexHeader>() as u64 + INDEX_MARKS_MAX * size_of::<IndexMark>() as u64;

/// The index of a sealed segment that begins with record `first`, from its file; `None` if that is
/// missing, unreadable, damaged or another segment's.
pub(crate) fn read<S: Storage>(
    storage: &S,
    segment: &Segment<S::File>,
    first: u64,
) -> Option<Index> {
    let file = storage.open(&file_name::index(segment.number), OpenMode::Read).ok()?;
    let length = file.length().ok().filter(|length| *length <= LONGEST)?;
    let mut bytes = vec![0; length as usize];
    let filled = file.fill_at(&mut bytes, 0).ok()?;
    let (index, sequences) = Index::decode(&bytes[..filled], segment.journal, segment.number)?;
    (sequences.start == first).then_some(index)
}

/// Makes the index of a sealed segment anew, for cursors and for the owner to write. That of a
/// damaged segment is empty: reading its records reports the damage.
///
/// # Errors
/// If the segment was removed, or the disk refuses.
pub(crate) fn restore<S: Storage>(source: &Source<S>, number: u64) -> Result<(), ReadError> {
    let segment = Segment::open(&source.storage, number, OpenMode::Read)?;
    let index = rebuild(&segment)?.unwrap_or_default();
    lock(&source.catalog).set_index(number, index);
    Ok(())
}

/// The index of a sealed segment from its records; `None` if these are damaged.
fn rebuild<F: StoredFile>(segment: &Segment<F>) -> StorageResult<Option<Index>> {
    let (mut index, mut read_buffer) = (Index::default(), ReadBuffer::default());
    let mut scanner = RecordScanner::new(SequenceCheck::at_segment(segment.number));
    loop {
        match scanner.step(&mut read_buffer, segment)? {
            Step::Record(at) => index.note(Mark::of(read_buffer.record(at).0, at)),
            Step::Sealed => return Ok(Some(index)),
            Step::Stopped(_) => return Ok(None),
        }
    }
}

/// Writes the indexes of complete segments that are in memory only, and drops them there. Only the
/// owner of the journal with this id may call this, and not beside retention.
///
/// # Errors
/// If the disk refuses; the next call tries again.
pub(crate) fn write_complete<S: Storage>(source: &Source<S>, journal: u64) -> StorageResult<()> {
    loop {
        let Some((number, bytes)) = lock(&source.catalog).unwritten(journal) else {
            return Ok(());
        };
        source.storage.create(&file_name::index(number))?.write_all_at(&bytes, 0)?;
        lock(&source.catalog).drop_index(number);
    }
}

/// Removes the index of a segment that is going to change or to be removed. A failure leaves a file
/// that the next opening removes.
pub(crate) fn remove<S: Storage>(storage: &S, number: u64) {
    let _ = storage.remove(&file_name::index(number));
}

/// Removes index files, but those of the `sealed` segments.
///
/// # Errors
/// If the disk refuses.
pub(crate) fn remove_loose<S: Storage>(storage: &S, sealed: &[u64]) -> StorageResult<()> {
    for name in storage.list()? {
        if file_name::index_number(&name).is_some_and(|number| !sealed.contains(&number)) {
            storage.remove(&name)?;
        }
    }
    Ok(())
}
