//! Retention pins: records from a pinned sequence on are kept.

use crate::lock::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

#[derive(Debug, Default)]
struct Table {
    next: u64,
    held: BTreeMap<u64, u64>,
}

/// All pins of a journal. Shared by cursors, checkpoints and retention.
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

    /// Lowest pinned sequence.
    pub(crate) fn lowest(&self) -> Option<u64> {
        lock(&self.0).held.values().min().copied()
    }
}

/// Keeps records from a sequence on until the pin is dropped.
///
/// Each cursor owns one. A checkpoint that covers all records before a sequence takes one from
/// `Journal::pin` and moves it forward.
#[derive(Debug)]
pub struct RetentionPin {
    pins: RetentionPins,
    key: u64,
}

impl RetentionPin {
    /// The pins that it is one of.
    pub(crate) const fn pins(&self) -> &RetentionPins {
        &self.pins
    }

    /// Moves the pin to `sequence`.
    pub fn move_to(&self, sequence: u64) {
        lock(&self.pins.0).held.insert(self.key, sequence);
    }
}

impl Drop for RetentionPin {
    fn drop(&mut self) {
        lock(&self.pins.0).held.remove(&self.key);
    }
}
