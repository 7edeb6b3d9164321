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
        let segment_numbers = contiguous_segments(&storage)?;
        if segment_numbers.is_empty() {
            return Err(OpenError::NoJournal { directory: storage.path("") });
        }
        let catalog = Recovery::new(&storage, &segment_numbers).catalog()?;
        Ok(Self { source: Arc::new(Source { storage, catalog: Mutex::new(catalog) }) })
    }

    /// A cursor over the written records, persisted or not.
    ///
    /// # Errors
    /// If the start position was removed or cannot be read.
    pub fn cursor(&self, from: Start) -> Result<Cursor<S>, ReadError> {
        Cursor::new(Arc::clone(&self.source), None, None, from)
    }
}
