//! [`Log`]: a journal without threads; the caller writes, synchronizes and preallocates.

use crate::batch::CommitBatch;
use crate::clock::unix_ns;
use crate::config::JournalConfig;
use crate::cursor::Cursor;
use crate::encoder::Encoder;
use crate::error::{AppendError, OpenError, ReadError};
use crate::index_file;
use crate::lock::lock;
use crate::open::{Opened, Recovered};
use crate::pin::{RetentionPin, RetentionPins};
use crate::record::Entry;
use crate::recycler::Recycler;
use crate::retention::retain;
use crate::segment::{Format, Segment};
use crate::start::{Source, Start};
use crate::storage::{Fill, Storage, StorageError, StorageResult};
use crate::writer::{Progress, SegmentSupply, Writer};
use core::ops::RangeInclusive;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A journal without background threads: every step happens in the caller's thread. For tools, for
/// tests with a simulated disk, and for programs that wait for each record anyway.
/// [`Journal`](crate::Journal) is the same with threads.
///
/// ```
/// use lanecast_journal::{Directory, Entry, JournalConfig, Log};
/// # let directory = tempfile::tempdir()?;
/// let mut log = Log::open(Directory::new(directory.path()), JournalConfig::default())?;
/// log.append(&[Entry { topic: 7, body: b"first", ..Entry::default() }])?;
/// assert_eq!(log.commit()?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Log<S: Storage> {
    source: Arc<Source<S>>,
    settings: JournalConfig,
    encoder: Encoder,
    batch: CommitBatch,
    writer: Writer<S>,
    preallocator: Preallocator<S>,
    pins: RetentionPins,
    persisted: u64,
    failure: Option<StorageError>,
    recovered: Recovered,
    _lock: S::Lock,
}

/// Spare segments, created on demand if there is none.
#[derive(Debug)]
struct Preallocator<S: Storage> {
    storage: Arc<Source<S>>,
    recycler: Recycler,
    format: Format,
    spares: VecDeque<Segment<S::File>>,
    next: u64,
}

impl<S: Storage> Preallocator<S> {
    fn make(&mut self) -> StorageResult<()> {
        let Self { storage, recycler, format, next, .. } = self;
        let made =
            Segment::make(&storage.storage, recycler, *format, *next, &mut |_| Fill::AtOnce)?;
        self.next += 1;
        self.spares.push_back(made);
        Ok(())
    }
}

impl<S: Storage> SegmentSupply<S::File> for Preallocator<S> {
    fn take(&mut self, number: u64) -> StorageResult<Segment<S::File>> {
        loop {
            match self.spares.pop_front() {
                Some(segment) if segment.number == number => return Ok(segment),
                // Skipping a segment would leave a gap in the journal.
                Some(segment) => debug_assert!(segment.number == number, "out of order"),
                None => self.make()?,
            }
        }
    }
}

impl<S: Storage> Log<S> {
    /// Opens the journal in `storage` for writing; creates it if there is none.
    ///
    /// # Errors
    /// If another process owns it, if durable records are damaged, or if the disk refuses.
    pub fn open(storage: S, settings: JournalConfig) -> Result<Self, OpenError> {
        let opened = Opened::open(&storage, &settings)?;
        let source = Arc::new(Source { storage, catalog: Mutex::new(opened.catalog) });
        Ok(Self {
            preallocator: Preallocator {
                storage: Arc::clone(&source),
                recycler: opened.recycler,
                format: opened.format,
                spares: opened.spares,
                next: opened.next_segment,
            },
            source,
            settings,
            encoder: opened.encoder,
            batch: CommitBatch::default(),
            writer: Writer::new(opened.current),
            pins: RetentionPins::default(),
            persisted: opened.recovered.last,
            failure: None,
            recovered: opened.recovered,
            _lock: opened.lock,
        })
    }

    /// Result of the recovery at opening.
    pub const fn recovered(&self) -> Recovered {
        self.recovered
    }

    /// Appends all of `entries` or none; [`commit`](Self::commit) makes them durable.
    ///
    /// Returns their sequences (an empty range for no entries). A crash keeps a prefix of the
    /// records that were not committed.
    ///
    /// # Errors
    /// See [`AppendError`].
    pub fn append(&mut self, entries: &[Entry<'_>]) -> Result<RangeInclusive<u64>, AppendError> {
        if self.failure.is_some() {
            return Err(AppendError::Failed);
        }
        if self.batch.length() >= self.settings.max_pending_bytes {
            return Err(AppendError::Full);
        }
        if self.batch.is_stalled {
            return Err(AppendError::NoSpace);
        }
        entries.iter().try_for_each(|entry| self.encoder.check(entry))?;
        let first = self.encoder.next();
        for entry in entries {
            self.encoder.encode(entry, self.persisted, &mut self.batch);
        }
        Ok(first..=self.encoder.next() - 1)
    }

    /// Writes and synchronizes the appended records; returns the last persisted sequence.
    ///
    /// # Errors
    /// One that [may pass](StorageError::may_pass): nothing is lost, and the next call continues.
    /// Any other error is final.
    pub fn commit(&mut self) -> StorageResult<u64> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let (persisted, catalog) = (&mut self.persisted, &self.source.catalog);
        let mut is_new = false;
        let outcome =
            self.writer.write(&mut self.batch, &mut self.preallocator, |reached, part, bytes| {
                if let Progress::Persisted(sequence) = reached {
                    lock(catalog).add(part, bytes);
                    is_new |= part.first.is_some();
                    *persisted = sequence;
                }
            });
        match outcome {
            Ok(()) => self.batch.clear(),
            Err(error) if error.may_pass() => {
                self.batch.is_stalled = true;
                return Err(error);
            }
            Err(error) => {
                self.failure = Some(error.clone());
                return Err(error);
            }
        }
        if is_new {
            // A search makes an index anew if its file cannot be written now.
            let _ = index_file::write_complete(&self.source, self.preallocator.format.journal);
        }
        Ok(self.persisted)
    }

    /// Last persisted sequence; 0 if there is none.
    pub const fn persisted(&self) -> u64 {
        self.persisted
    }

    /// Creates spare segments up to the configured number.
    ///
    /// # Errors
    /// If there is no space, or the disk refuses.
    pub fn preallocate(&mut self) -> StorageResult<()> {
        while self.preallocator.spares.len() < self.settings.spare_segments {
            self.preallocator.make()?;
        }
        Ok(())
    }

    /// Removes the segments that the configured retention and the pins release; returns their
    /// count.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn apply_retention(&mut self) -> StorageResult<usize> {
        let Source { storage, catalog } = &*self.source;
        let (recycler, retention) = (&self.preallocator.recycler, self.settings.retention);
        retain(storage, catalog, recycler, retention, &self.pins, unix_ns())
    }

    /// Keeps records from `sequence` on until the pin is dropped.
    pub fn pin(&self, sequence: u64) -> RetentionPin {
        self.pins.pin(sequence)
    }

    /// A cursor over the written records.
    ///
    /// # Errors
    /// If the start position was removed or cannot be read.
    pub fn cursor(&self, from: Start) -> Result<Cursor<S>, ReadError> {
        Cursor::new(Arc::clone(&self.source), None, Some(&self.pins), from)
    }
}
