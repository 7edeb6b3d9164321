//! What must not be removed, because somebody still needs it.

use crate::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

#[derive(Debug, Default)]
struct Table {
    next: u64,
    held: BTreeMap<u64, u64>,
}

/// Everybody's holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetentionPins(Arc<Mutex<Table>>);

impl RetentionPins {
    pub(crate) fn pin(&self, sequence: u64) -> RetentionPin {
        let mut table = lock(&self.0);
        let key = table.next;
        table.next += 1;
        table.held.insert(key, sequence);
        RetentionPin { pins: self.clone(), key }
    }

    /// The lowest sequence that is held.
    pub(crate) fn lowest(&self) -> Option<u64> {
        lock(&self.0).held.values().min().copied()
    }
}

/// Keeps retention from removing records: those from some sequence on stay as long as it lives.
///
/// Cursors have one. A checkpoint that covers all records before some sequence takes one from
/// `Journal::pin`, and moves it when it covers more.
#[derive(Debug)]
pub struct RetentionPin {
    pins: RetentionPins,
    key: u64,
}

impl RetentionPin {
    /// From now on holds `sequence` and what is behind it.
    pub fn move_to(&self, sequence: u64) {
        lock(&self.pins.0).held.insert(self.key, sequence);
    }
}

impl Drop for RetentionPin {
    fn drop(&mut self) {
        lock(&self.pins.0).held.remove(&self.key);
    }
}
