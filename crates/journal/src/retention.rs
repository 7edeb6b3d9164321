//! Retention: removes the oldest segments above a total size or an age. Runs on the preallocator
//! thread, or in `apply_retention`.

use crate::catalog::Catalog;
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
        let next = next(&lock(catalog), retention, pins, unix_ns);
        let Some((number, bytes)) = next else { return Ok(removed) };
        // Oldest first, each removal durable: a crash must not leave a gap.
        index_file::remove(storage, number);
        recycler.recycle(storage, number, bytes)?;
        lock(catalog).remove_oldest();
        removed += 1;
    }
}

/// Number and length of the oldest segment, if it may be removed.
fn next(
    catalog: &Catalog,
    retention: Retention,
    pins: &RetentionPins,
    unix_ns: u64,
) -> Option<(u64, u64)> {
    // Its first record bounds the age and the sequences of the oldest segment.
    let behind = catalog.second_oldest()?;
    let too_much = retention.bytes.is_some_and(|most| catalog.bytes() > most);
    let too_old = retention
        .age
        .is_some_and(|most| u128::from(unix_ns.saturating_sub(behind.unix_ns)) > most.as_nanos());
    // A segment is needed as long as its last record, the one before `behind`, is pinned.
    let is_free = pins.lowest().is_none_or(|lowest| lowest >= behind.sequence);
    let goes = (too_much || too_old) && is_free;
    goes.then(|| catalog.oldest().map(|oldest| (oldest.number, oldest.bytes))).flatten()
}
