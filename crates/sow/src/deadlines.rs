//! Deadlines of records and subscriptions.

use crate::record::NEVER;
use std::collections::BTreeSet;

/// Rows or ids by their deadline, in nanoseconds of the owner's clock. Those with [`NEVER`] are
/// left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deadlines(BTreeSet<(u64, u32)>);

impl Deadlines {
    /// Changes the deadline of `id`.
    pub(crate) fn moved(&mut self, id: u32, from_ns: u64, to_ns: u64) {
        if from_ns == to_ns {
            return;
        }
        if from_ns != NEVER {
            self.0.remove(&(from_ns, id));
        }
        if to_ns != NEVER {
            self.0.insert((to_ns, id));
        }
    }

    /// The next deadline.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        Some(self.0.first()?.0)
    }

    /// The id with the earliest deadline, if it has passed.
    pub(crate) fn due(&self, now_ns: u64) -> Option<u32> {
        let (due_ns, id) = *self.0.first()?;
        (due_ns <= now_ns).then_some(id)
    }
}
