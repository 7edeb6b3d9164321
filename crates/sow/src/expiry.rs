//! Expiry of records.

use crate::record::NEVER;
use std::collections::BTreeSet;

/// Rows of records with a lifetime, ordered by the end of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expiry(BTreeSet<(u64, u32)>);

impl Expiry {
    /// Changes the expiry time of a row.
    pub(crate) fn moved(&mut self, row_id: u32, from_ns: u64, to_ns: u64) {
        if from_ns == to_ns {
            return;
        }
        if from_ns != NEVER {
            self.0.remove(&(from_ns, row_id));
        }
        if to_ns != NEVER {
            self.0.insert((to_ns, row_id));
        }
    }

    /// Time at which the next record expires.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        Some(self.0.first()?.0)
    }

    /// Row of a record that has expired.
    pub(crate) fn due(&self, now_ns: u64) -> Option<u32> {
        let (due_ns, row_id) = *self.0.first()?;
        (due_ns <= now_ns).then_some(row_id)
    }
}
