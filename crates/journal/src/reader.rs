//! Reading a journal without owning it.

use crate::cursor::Cursor;
use crate::error::{OpenError, ReadError};
use crate::recovery::{Recovery, contiguous_segments};
use crate::start::{Source, Start};
use crate::storage::Storage;
use std::sync::{Arc, Mutex};

/// A journal opened for reading only. It takes no lock; a writer may be appending in another
/// process.
///
/// Its cursors pin nothing: records that the writer's retention removes are gone.
#[derive(Debug)]
pub struct Reader<S: Storage> {
    source: Arc<Source<S>>,
}

impl<S: Storage> Reader<S> {
    /// Opens the journal in `storage` for reading.
    ///
    /// # Errors
    /// If there is no journal, a segment is missing or invalid, or the disk refuses.
    pub fn open(storage: S) -> Result<Self, OpenError> {
        let mut segment_numbers = contiguous_segments(&storage)?;
        loop {
            let Some(oldest) = segment_numbers.first() else {
                return Err(OpenError::NoJournal { directory: storage.path("") });
            };
            match Recovery::new(&storage, &segment_numbers).catalog() {
                Ok(catalog) => {
                    let source = Source { storage, catalog: Mutex::new(catalog) };
                    return Ok(Self { source: Arc::new(source) });
                }
                Err(error) => {
                    // The writer's retention removes the oldest segments, or reuses their files,
                    // while they are read here. Each retry starts at a later one.
                    let left = contiguous_segments(&storage)?;
                    if left.first().is_none_or(|first| first <= oldest) {
                        return Err(error);
                    }
                    segment_numbers = left;
                }
            }
        }
    }

    /// A cursor over the written records, persisted or not.
    ///
    /// # Errors
    /// If the start position was removed or cannot be read.
    pub fn cursor(&self, from: Start) -> Result<Cursor<S>, ReadError> {
        Cursor::new(Arc::clone(&self.source), None, None, from)
    }
}
