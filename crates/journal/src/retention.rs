//! Retention: removes the oldest segments above a total size or an age. Runs on the preallocator
//! thread, or in `apply_retention`.

use crate::catalog::{Catalog, CatalogEntry};
use crate::config::Retention;
use crate::index_file;
use crate::lock::lock;
use crate::pin::RetentionPins;
use crate::recycler::Recycler;
use crate::storage::{Storage, StorageResult};
use std::sync::Mutex;

/// Removes the segments that `retention` and `pins` release; returns their count.
///
/// The newest segment with records always stays: it holds the sequence to continue from.
pub(crate) fn retain<S: Storage>(
    storage: &S,
    catalog: &Mutex<Catalog>,
    recycler: &Recycler,
    retention: Retention,
    pins: &RetentionPins,
    unix_ns: u64,
) -> StorageResult<usize> {
    let mut removed = 0;
    loop {
        // Under one lock with the look at the pins: a cursor pins before it looks for its segment.
        let Some(oldest) = take_oldest(&mut lock(catalog), retention, pins, unix_ns) else {
            return Ok(removed);
        };
        // Oldest first, each removal durable: a crash must not leave a gap.
        index_file::remove(storage, oldest.number);
        if let Err(error) = recycler.recycle(storage, oldest.number, oldest.bytes) {
            lock(catalog).put_back(oldest);
            return Err(error);
        }
        removed += 1;
    }
}

/// Sequence of the first record behind the oldest segment, if the limits would remove that, pinned
/// or not.
pub(crate) fn due(catalog: &Catalog, retention: Retention, unix_ns: u64) -> Option<u64> {
    // Its first record bounds the age and the sequences of the oldest segment.
    let behind = catalog.second_oldest()?;
    let too_much = retention.bytes.is_some_and(|most| catalog.bytes() > most);
    let too_old = retention
        .age
        .is_some_and(|most| u128::from(unix_ns.saturating_sub(behind.unix_ns)) > most.as_nanos());
    (too_much || too_old).then_some(behind.sequence)
}

/// Takes the oldest segment out of the catalog, if it may be removed.
fn take_oldest(
    catalog: &mut Catalog,
    retention: Retention,
    pins: &RetentionPins,
    unix_ns: u64,
) -> Option<CatalogEntry> {
    let behind = due(catalog, retention, unix_ns)?;
    // A segment is needed as long as its last record, the one before `behind`, is pinned.
    let is_free = pins.lowest().is_none_or(|lowest| lowest >= behind);
    is_free.then(|| catalog.take_oldest()).flatten()
}
