//! Reading beside a living owner, without being one.

use crate::catalog::Catalog;
use crate::cursor::{Cursor, Source, Start};
use crate::error::{OpenError, ReadError};
use crate::recovery::{Recovery, contiguous_segments};
use crate::storage::Storage;
use std::sync::{Arc, Mutex};

/// A journal that is only read. It takes no lock, and its owner may be alive and append.
///
/// Nothing is held for its cursors: what the owner removes is gone.
#[derive(Debug)]
pub struct Reader<S: Storage> {
    source: Arc<Source<S>>,
}

impl<S: Storage> Reader<S> {
    /// Opens the journal in `storage` for reading.
    ///
    /// # Errors
    /// If there is none, if a segment is missing or not one, or if the disk refuses.
    pub fn open(storage: S) -> Result<Self, OpenError> {
        let segment_numbers = contiguous_segments(&storage)?;
        if segment_numbers.is_empty() {
            return Err(OpenError::NoJournal { directory: storage.path("") });
        }
        let catalog =
            Catalog::load(&mut Recovery::new(&storage, &segment_numbers), &segment_numbers)?;
        Ok(Self { source: Arc::new(Source { storage, catalog: Mutex::new(catalog) }) })
    }

    /// A cursor over the records that were written, persisted or not.
    ///
    /// # Errors
    /// If what it should start with is gone, or cannot be read.
    pub fn cursor(&self, from: Start) -> Result<Cursor<S>, ReadError> {
        Cursor::new(Arc::clone(&self.source), None, None, from)
    }
}
