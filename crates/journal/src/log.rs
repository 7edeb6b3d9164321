//! The journal on one thread: whoever appends also writes, synchronises and prepares.

use crate::batch::CommitBatch;
use crate::config::JournalConfig;
use crate::cursor::{Cursor, Source, Start};
use crate::encoder::Encoder;
use crate::error::{AppendError, OpenError, ReadError};
use crate::lock;
use crate::open::{Opened, Recovered};
use crate::pin::{RetentionPin, RetentionPins};
use crate::record::Entry;
use crate::recycler::Recycler;
use crate::retention::retain;
use crate::segment::{Format, Segment};
use crate::storage::{Storage, StorageError, StorageErrorKind, StorageResult};
use crate::unix_ns;
use crate::writer::{Progress, SegmentSource, Writer};
use core::ops::RangeInclusive;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A journal whose owner does everything on one thread, when it says so: for tools, for tests with
/// a simulated disk, and for programs that wait for each record anyway. [`Journal`](crate::Journal)
/// has threads of its own for what takes long.
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

/// Segments that are ready, made on the spot if there is none.
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
        let made = Segment::make(&storage.storage, recycler, *format, *next, &mut |_| true)?;
        self.next += 1;
        self.spares.push_back(made);
        Ok(())
    }
}

impl<S: Storage> SegmentSource<S::File> for Preallocator<S> {
    fn take(&mut self, number: u64) -> StorageResult<Segment<S::File>> {
        loop {
            match self.spares.pop_front() {
                Some(segment) if segment.number == number => return Ok(segment),
                // A segment that was passed over would be a gap: it cannot be.
                Some(segment) => debug_assert!(segment.number == number, "out of order"),
                None => self.make()?,
            }
        }
    }
}

impl<S: Storage> Log<S> {
    /// Opens the journal in `storage` for writing, or makes one.
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

    /// What opening found.
    pub const fn recovered(&self) -> Recovered {
        self.recovered
    }

    /// Appends all of `entries` or none; they are durable when [`commit`](Self::commit) says so.
    ///
    /// Gives their sequences, an empty range if there are no entries. A crash keeps a beginning
    /// of what was not committed, or nothing.
    ///
    /// # Errors
    /// See [`AppendError`].
    pub fn append(&mut self, entries: &[Entry<'_>]) -> Result<RangeInclusive<u64>, AppendError> {
        if self.failure.is_some() {
            return Err(AppendError::Failed);
        }
        if self.batch.bytes.len() >= self.settings.max_pending_bytes {
            return Err(AppendError::Full);
        }
        if self.batch.is_stalled {
            return Err(AppendError::NoSpace);
        }
        entries.iter().try_for_each(|entry| self.encoder.check(entry.body))?;
        let first = self.encoder.next();
        for entry in entries {
            self.encoder.encode(entry, self.persisted, &mut self.batch);
        }
        Ok(first..=self.encoder.next() - 1)
    }

    /// Writes and synchronises what was appended; gives the last sequence that is persisted.
    ///
    /// # Errors
    /// `NoSpace`: nothing is lost, and the next call goes on. Anything else is for good.
    pub fn commit(&mut self) -> StorageResult<u64> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let (persisted, catalog) = (&mut self.persisted, &self.source.catalog);
        let outcome =
            self.writer.write(&mut self.batch, &mut self.preallocator, |reached, part, bytes| {
                if let Progress::Persisted(sequence) = reached {
                    lock(catalog).note(part, bytes);
                    *persisted = sequence;
                }
            });
        match outcome {
            Ok(()) => self.batch.clear(),
            Err(error) if error.kind == StorageErrorKind::NoSpace => {
                self.batch.is_stalled = true;
                return Err(error);
            }
            Err(error) => {
                self.failure = Some(error.clone());
                return Err(error);
            }
        }
        Ok(self.persisted)
    }

    /// The last sequence that is persisted; 0 if none is.
    pub const fn persisted(&self) -> u64 {
        self.persisted
    }

    /// Makes segments until as many are ready as the settings say.
    ///
    /// # Errors
    /// If there is no space, or the disk refuses.
    pub fn preallocate(&mut self) -> StorageResult<()> {
        while self.preallocator.spares.len() < self.settings.spare_segments {
            self.preallocator.make()?;
        }
        Ok(())
    }

    /// Removes what the settings' retention and the holds let go; tells how many segments.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn apply_retention(&mut self) -> StorageResult<usize> {
        let Source { storage, catalog } = &*self.source;
        let (recycler, retention) = (&self.preallocator.recycler, self.settings.retention);
        retain(storage, catalog, recycler, retention, &self.pins, unix_ns())
    }

    /// Keeps records from `sequence` on from being removed.
    pub fn pin(&self, sequence: u64) -> RetentionPin {
        self.pins.pin(sequence)
    }

    /// A cursor over what is written.
    ///
    /// # Errors
    /// If what it should start with is gone, or cannot be read.
    pub fn cursor(&self, from: Start) -> Result<Cursor<S>, ReadError> {
        Cursor::new(Arc::clone(&self.source), None, Some(&self.pins), from)
    }
}
