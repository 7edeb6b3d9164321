//! Files of segments that retention has given up, kept to become segments again.
//!
//! Their blocks were written before, so neither the making of a segment nor the first
//! synchronisation of its records costs what those of a new file do.

use crate::lock;
use crate::name;
use crate::storage::{Outcome, Storage};
use std::sync::Mutex;

/// Files that wait to be used again.
#[derive(Debug)]
pub(crate) struct Reserve {
    /// The numbers that they had.
    numbers: Mutex<Vec<u64>>,
    /// As many are kept, and no more.
    most: usize,
    /// The only length that is of use.
    segment_bytes: u64,
}

impl Reserve {
    pub(crate) fn new(most: usize, segment_bytes: u64) -> Self {
        Self { numbers: Mutex::default(), most: most.max(1), segment_bytes }
    }

    /// Takes a segment of `bytes` bytes out of the journal, durably; its file is kept here if
    /// there is use for it.
    pub(crate) fn give_up<S: Storage>(&self, storage: &S, number: u64, bytes: u64) -> Outcome<()> {
        let is_of_use = bytes == self.segment_bytes && lock(&self.numbers).len() < self.most;
        let segment = name::segment(number);
        if is_of_use {
            storage.rename(&segment, &name::given_up(number))?;
        } else {
            storage.remove(&segment)?;
        }
        storage.sync_directory()?;
        if is_of_use {
            lock(&self.numbers).push(number);
        }
        Ok(())
    }

    /// The name of a file, which is not kept here any more.
    pub(crate) fn take(&self) -> Option<String> {
        lock(&self.numbers).pop().map(name::given_up)
    }
}
