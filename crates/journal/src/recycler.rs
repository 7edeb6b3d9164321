//! Files of removed segments, kept for reuse.
//!
//! Their blocks are allocated and written, so neither creating a segment nor the first
//! synchronization of its records costs a file system transaction.

use crate::file_name;
use crate::lock::lock;
use crate::storage::{OpenMode, Storage, StorageErrorKind, StorageResult};
use std::sync::Mutex;

/// Pool of files to reuse.
#[derive(Debug)]
pub(crate) struct Recycler {
    /// Their former segment numbers.
    segment_numbers: Mutex<Vec<u64>>,
    /// Capacity of the pool.
    most: usize,
    /// Length of new segments; files of another length are deleted.
    segment_bytes: u64,
}

impl Recycler {
    pub(crate) fn new(most: usize, segment_bytes: u64) -> Self {
        Self { segment_numbers: Mutex::default(), most: most.max(1), segment_bytes }
    }

    /// Durably removes a segment of `bytes` bytes from the journal; keeps its file if the pool has
    /// a use for it.
    pub(crate) fn recycle<S: Storage>(
        &self,
        storage: &S,
        number: u64,
        bytes: u64,
    ) -> StorageResult<()> {
        // A file of another length would need its space reserved again, which reuse avoids; the
        // number of spares is bounded, so that retention frees space in the end.
        let is_of_use =
            bytes == self.segment_bytes && lock(&self.segment_numbers).len() < self.most;
        let (segment, recycled) = (file_name::segment(number), file_name::recycled(number));
        let changed =
            if is_of_use { storage.rename(&segment, &recycled) } else { storage.remove(&segment) };
        let is_kept = match changed {
            Ok(()) => is_of_use,
            // An earlier attempt did it, and could not make it durable.
            Err(error) if error.kind == StorageErrorKind::NotFound => {
                storage.open(&recycled, OpenMode::Read).is_ok()
            }
            Err(error) => return Err(error),
        };
        // Durable before the file is offered for reuse: a crash must not bring back the old name
        // over new contents.
        storage.sync_directory()?;
        if is_kept {
            lock(&self.segment_numbers).push(number);
        }
        Ok(())
    }

    /// Takes a file out of the pool; returns its name.
    pub(crate) fn take(&self) -> Option<String> {
        lock(&self.segment_numbers).pop().map(file_name::recycled)
    }
}
