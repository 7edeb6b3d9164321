//! The journal on one thread: whoever appends also writes, synchronises and prepares.

use crate::cursor::{Cursor, Source, Start};
use crate::encoder::Encoder;
use crate::error::{AppendError, OpenError, ReadError};
use crate::group::Group;
use crate::hold::{Hold, Holds};
use crate::lock;
use crate::opening::{Opened, Recovered};
use crate::record::Entry;
use crate::reserve::Reserve;
use crate::retention::retain;
use crate::segment::{Segment, Shape};
use crate::settings::Settings;
use crate::storage::{Fault, Outcome, Storage, StorageError};
use crate::unix_ns;
use crate::writer::{Reached, Supply, Writer};
use core::ops::RangeInclusive;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// A journal whose owner does everything on one thread, when it says so: for tools, for tests with
/// a simulated disk, and for programs that wait for each record anyway. [`Journal`](crate::Journal)
/// has threads of its own for what takes long.
///
/// ```
/// use lanecast_journal::{Directory, Entry, Log, Settings};
/// # let directory = tempfile::tempdir()?;
/// let mut log = Log::open(Directory::new(directory.path()), Settings::default())?;
/// log.append(&[Entry { topic: 7, body: b"first", ..Entry::default() }])?;
/// assert_eq!(log.commit()?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Log<S: Storage> {
    source: Arc<Source<S>>,
    settings: Settings,
    encoder: Encoder,
    group: Group,
    writer: Writer<S>,
    stock: Stock<S>,
    holds: Holds,
    persisted: u64,
    failure: Option<StorageError>,
    recovered: Recovered,
    _ownership: S::Ownership,
}

/// Segments that are ready, made on the spot if there is none.
#[derive(Debug)]
struct Stock<S: Storage> {
    storage: Arc<Source<S>>,
    reserve: Reserve,
    shape: Shape,
    spares: VecDeque<Segment<S::File>>,
    next: u64,
}

impl<S: Storage> Stock<S> {
    fn make(&mut self) -> Outcome<()> {
        let Self { storage, reserve, shape, next, .. } = self;
        let made = Segment::make(&storage.storage, reserve, *shape, *next, &mut |_| true)?;
        self.next += 1;
        self.spares.push_back(made);
        Ok(())
    }
}

impl<S: Storage> Supply<S::File> for Stock<S> {
    fn take(&mut self, number: u64) -> Outcome<Segment<S::File>> {
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
    pub fn open(storage: S, settings: Settings) -> Result<Self, OpenError> {
        let opened = Opened::open(&storage, &settings)?;
        let source = Arc::new(Source { storage, catalog: Mutex::new(opened.catalog) });
        Ok(Self {
            stock: Stock {
                storage: Arc::clone(&source),
                reserve: opened.reserve,
                shape: opened.shape,
                spares: opened.spares,
                next: opened.next_segment,
            },
            source,
            settings,
            encoder: opened.encoder,
            group: Group::default(),
            writer: Writer::new(opened.current),
            holds: Holds::default(),
            persisted: opened.recovered.last,
            failure: None,
            recovered: opened.recovered,
            _ownership: opened.ownership,
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
        if self.group.bytes.len() >= self.settings.pending_bytes {
            return Err(AppendError::Full);
        }
        if self.group.is_stalled {
            return Err(AppendError::NoSpace);
        }
        entries.iter().try_for_each(|entry| self.encoder.check(entry.body))?;
        let first = self.encoder.next();
        for entry in entries {
            self.encoder.encode(entry, self.persisted, &mut self.group);
        }
        Ok(first..=self.encoder.next() - 1)
    }

    /// Writes and synchronises what was appended; gives the last sequence that is persisted.
    ///
    /// # Errors
    /// `NoSpace`: nothing is lost, and the next call goes on. Anything else is for good.
    pub fn commit(&mut self) -> Outcome<u64> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let (persisted, catalog) = (&mut self.persisted, &self.source.catalog);
        let outcome =
            self.writer.write(&mut self.group, &mut self.stock, |reached, piece, bytes| {
                if let Reached::Persisted(sequence) = reached {
                    lock(catalog).note(piece, bytes);
                    *persisted = sequence;
                }
            });
        match outcome {
            Ok(()) => self.group.clear(),
            Err(error) if error.fault == Fault::NoSpace => {
                self.group.is_stalled = true;
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
    pub fn prepare(&mut self) -> Outcome<()> {
        while self.stock.spares.len() < self.settings.spares {
            self.stock.make()?;
        }
        Ok(())
    }

    /// Removes what the settings' retention and the holds let go; tells how many segments.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn retain(&mut self) -> Outcome<usize> {
        let Source { storage, catalog } = &*self.source;
        let (reserve, retention) = (&self.stock.reserve, self.settings.retention);
        retain(storage, catalog, reserve, retention, &self.holds, unix_ns())
    }

    /// Keeps records from `sequence` on from being removed.
    pub fn hold(&self, sequence: u64) -> Hold {
        self.holds.hold(sequence)
    }

    /// A cursor over what is written.
    ///
    /// # Errors
    /// If what it should start with is gone, or cannot be read.
    pub fn cursor(&self, from: Start) -> Result<Cursor<S>, ReadError> {
        Cursor::new(Arc::clone(&self.source), None, Some(&self.holds), from)
    }
}
