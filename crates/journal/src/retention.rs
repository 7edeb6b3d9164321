//! The oldest segments go when there is too much, or when they are too old.

use crate::catalog::Catalog;
use crate::hold::Holds;
use crate::lock;
use crate::reserve::Reserve;
use crate::settings::Retention;
use crate::storage::{Outcome, Storage};
use std::sync::Mutex;

/// Removes what `retention` and `holds` let go; tells how many segments.
///
/// The newest segment with records always stays: it knows the next record's sequence.
pub(crate) fn retain<S: Storage>(
    storage: &S,
    catalog: &Mutex<Catalog>,
    reserve: &Reserve,
    retention: Retention,
    holds: &Holds,
    unix_ns: u64,
) -> Outcome<usize> {
    let mut removed = 0;
    loop {
        let next = next(&lock(catalog), retention, holds, unix_ns);
        let Some((number, bytes)) = next else { return Ok(removed) };
        // From the oldest on, each one durably: a crash must not leave a gap.
        reserve.give_up(storage, number, bytes)?;
        lock(catalog).forget_oldest();
        removed += 1;
    }
}

/// The number and the length of the oldest segment, if it may go.
fn next(
    catalog: &Catalog,
    retention: Retention,
    holds: &Holds,
    unix_ns: u64,
) -> Option<(u64, u64)> {
    let behind = catalog.behind_oldest()?;
    let too_much = retention.bytes.is_some_and(|most| catalog.bytes() > most);
    let too_old = retention
        .age
        .is_some_and(|most| u128::from(unix_ns.saturating_sub(behind.unix_ns)) > most.as_nanos());
    let is_free = holds.lowest().is_none_or(|lowest| lowest >= behind.sequence);
    let goes = (too_much || too_old) && is_free;
    goes.then(|| catalog.oldest().map(|oldest| (oldest.number, oldest.bytes))).flatten()
}
