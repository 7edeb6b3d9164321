//! Files of segments that retention has given up, kept to become segments again.
//!
//! Their blocks were written before, so neither the making of a segment nor the first
//! synchronisation of its records costs what those of a new file do.

use crate::file_name;
use crate::lock;
use crate::storage::{Storage, StorageResult};
use std::sync::Mutex;

/// Files that wait to be used again.
#[derive(Debug)]
pub(crate) struct Recycler {
    /// The numbers that they had.
    segment_numbers: Mutex<Vec<u64>>,
    /// As many are kept, and no more.
    most: usize,
    /// The only length that is of use.
    segment_bytes: u64,
}

impl Recycler {
    pub(crate) fn new(most: usize, segment_bytes: u64) -> Self {
        Self { segment_numbers: Mutex::default(), most: most.max(1), segment_bytes }
    }

    /// Takes a segment of `bytes` bytes out of the journal, durably; its file is kept here if
    /// there is use for it.
    pub(crate) fn recycle<S: Storage>(
        &self,
        storage: &S,
        number: u64,
        bytes: u64,
    ) -> StorageResult<()> {
        let is_of_use =
            bytes == self.segment_bytes && lock(&self.segment_numbers).len() < self.most;
        let segment = file_name::segment(number);
        if is_of_use {
            storage.rename(&segment, &file_name::recycled(number))?;
        } else {
            storage.remove(&segment)?;
        }
        storage.sync_directory()?;
        if is_of_use {
            lock(&self.segment_numbers).push(number);
        }
        Ok(())
    }

    /// The name of a file, which is not kept here any more.
    pub(crate) fn take(&self) -> Option<String> {
        lock(&self.segment_numbers).pop().map(file_name::recycled)
    }
}
