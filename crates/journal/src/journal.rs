//! The journal with threads of its own.

use crate::cursor::{Cursor, Limit, Source, Start};
use crate::error::{AppendError, OpenError, PersistError, ReadError, WaitError};
use crate::group::Group;
use crate::hold::{Hold, Holds};
use crate::intake::{Health, Intake, Level};
use crate::lock;
use crate::opening::{Opened, Recovered};
use crate::record::Entry;
use crate::retention::retain;
use crate::settings::Settings;
use crate::stock::Stock;
use crate::storage::{Outcome, Storage, StorageError};
use crate::writer::{Reached, Writer};
use crate::{deadline, unix_ns};
use core::fmt;
use core::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Called whenever the disk has come further, with the last persisted sequence.
type Listener = Box<dyn Fn(u64) + Send + Sync>;

/// Everything behind the intake that touches files.
struct Back<S: Storage> {
    intake: Arc<Intake>,
    source: Arc<Source<S>>,
    writer: Mutex<Writer<S>>,
    stock: Stock<S>,
    holds: Holds,
    /// Held by whoever removes segments.
    retaining: Mutex<()>,
    settings: Settings,
    listener: Option<Listener>,
}

/// A durable log that this process owns.
///
/// Records are appended by any thread; what arrives while the disk synchronises is written and
/// synchronised together. That happens on the committer's thread, or on the thread of somebody
/// who waits while nobody else writes.
#[derive(Debug)]
pub struct Journal<S: Storage> {
    back: Arc<Back<S>>,
    committer: Option<JoinHandle<()>>,
    preparer: Option<JoinHandle<()>>,
    recovered: Recovered,
    _ownership: S::Ownership,
}

impl<S: Storage> fmt::Debug for Back<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Back").field("intake", &self.intake).finish_non_exhaustive()
    }
}

impl<S: Storage> Journal<S> {
    /// Opens the journal in `storage` for writing, or makes one.
    ///
    /// # Errors
    /// If another process owns it, if durable records are damaged, or if the disk refuses.
    pub fn open(storage: S, settings: Settings) -> Result<Self, OpenError> {
        Self::start(storage, settings, None)
    }

    /// The same; `listener` is called by the thread that writes, with the last persisted sequence,
    /// whenever it has changed what others may wait for: [`waiting_bytes`](Self::waiting_bytes) has
    /// fallen, more is [persisted](Level::Persisted), or the disk has [failed](Self::failure). It
    /// is called after the change, and must not wait.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(
        storage: S,
        settings: Settings,
        listener: impl Fn(u64) + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        Self::start(storage, settings, Some(Box::new(listener)))
    }

    fn start(
        storage: S,
        settings: Settings,
        listener: Option<Listener>,
    ) -> Result<Self, OpenError> {
        let opened = Opened::open(&storage, &settings)?;
        let source = Arc::new(Source { storage, catalog: Mutex::new(opened.catalog) });
        let Opened { shape, spares, reserve, next_segment, recovered, ownership, .. } = opened;
        let (shelf, wanted) = (Arc::clone(&source), settings.spares);
        let back = Arc::new(Back {
            intake: Arc::new(Intake::new(opened.encoder, settings.pending_bytes)),
            source,
            writer: Mutex::new(Writer::new(opened.current)),
            stock: Stock::new(shelf, reserve, shape, wanted, spares, next_segment),
            holds: Holds::default(),
            retaining: Mutex::new(()),
            settings,
            listener,
        });
        let (beside, behind) = (Arc::clone(&back), Arc::clone(&back));
        // What cannot be removed now is tried again with the next segment.
        let preparer = thread("lanecast-spares", move || {
            beside.stock.keep_filled(|| drop(beside.retain()));
        })?;
        let mut journal = Self {
            back,
            committer: None,
            preparer: Some(preparer),
            recovered,
            _ownership: ownership,
        };
        journal.committer = Some(thread("lanecast-commit", move || behind.keep_committing())?);
        Ok(journal)
    }

    /// What opening found.
    pub const fn recovered(&self) -> Recovered {
        self.recovered
    }

    /// Appends all of `entries` or none, and gives their sequences, an empty range if there are
    /// no entries. Never waits for the disk.
    ///
    /// They are in memory then, and on their way. A crash keeps a beginning of them, or nothing.
    ///
    /// # Errors
    /// See [`AppendError`]; `Full` and `NoSpace` are back-pressure.
    pub fn append(&self, entries: &[Entry<'_>]) -> Result<RangeInclusive<u64>, AppendError> {
        self.back.intake.append(entries, true)
    }

    /// Appends `entries` and waits until they are persisted; gives the last one's sequence.
    ///
    /// # Errors
    /// See [`PersistError`]. After `Wait` they are accepted, and may be persisted later.
    pub fn persist(&self, entries: &[Entry<'_>], timeout: Duration) -> Result<u64, PersistError> {
        let sequences = self.back.intake.append(entries, false)?;
        let last = *sequences.end();
        self.wait(last, Level::Persisted, timeout)?;
        Ok(last)
    }

    /// Waits until `level` may be said of record `sequence`. While nobody else writes, the caller
    /// does.
    ///
    /// # Errors
    /// See [`WaitError`].
    pub fn wait(&self, sequence: u64, level: Level, timeout: Duration) -> Result<(), WaitError> {
        let deadline = deadline(timeout);
        let intake = &self.back.intake;
        while let Some(group) = intake.wait_or_lead(sequence, level, deadline)? {
            self.back.commit(group);
        }
        Ok(())
    }

    /// The last sequence of which `level` may be said; 0 if there is none.
    pub fn reached(&self, level: Level) -> u64 {
        self.back.intake.reached(level)
    }

    /// How much was appended and waits for the disk, in bytes: from `Settings::pending_bytes` on
    /// appending is refused, so those who can slow down should do so before. 0 where appending is
    /// refused for another reason, such as a full disk: who tries is told.
    pub fn waiting_bytes(&self) -> usize {
        self.back.intake.waiting_bytes()
    }

    /// Whether the disk takes what is appended. Looking costs one load.
    pub fn health(&self) -> Health {
        self.back.intake.health()
    }

    /// Why the journal accepts nothing any more; `None` if it does.
    pub fn failure(&self) -> Option<StorageError> {
        self.back.intake.failure()
    }

    /// Waits until as many segments are ready as the settings say.
    ///
    /// # Errors
    /// If one cannot be made.
    pub fn prepared(&self) -> Outcome<()> {
        self.back.stock.wait_for(self.back.settings.spares)
    }

    /// Removes what the settings' retention and the holds let go; tells how many segments. The
    /// preparer does the same whenever the journal has gone on in another segment.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn retain(&self) -> Outcome<usize> {
        self.back.retain()
    }

    /// Keeps records from `sequence` on from being removed.
    pub fn hold(&self, sequence: u64) -> Hold {
        self.back.holds.hold(sequence)
    }

    /// A cursor over the records of which `level` may be said.
    ///
    /// # Errors
    /// If what it should start with is gone, or cannot be read.
    pub fn cursor(&self, from: Start, level: Level) -> Result<Cursor<S>, ReadError> {
        let limit = Limit { intake: Arc::clone(&self.back.intake), level };
        let source = Arc::clone(&self.back.source);
        Cursor::new(source, Some(limit), Some(&self.back.holds), from)
    }

    /// Writes what is left, and ends. Dropping does the same and tells nobody.
    ///
    /// # Errors
    /// If the disk has failed, or has no space for what is left.
    pub fn close(mut self) -> Outcome<()> {
        self.end();
        self.failure().map_or(Ok(()), Err)
    }

    fn end(&mut self) {
        self.back.intake.close();
        if let Some(committer) = self.committer.take() {
            let _ = committer.join();
        }
        self.back.stock.close();
        if let Some(preparer) = self.preparer.take() {
            let _ = preparer.join();
        }
    }
}

impl<S: Storage> Drop for Journal<S> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<S: Storage> Back<S> {
    /// The committer's thread.
    fn keep_committing(&self) {
        while let Some(group) = self.intake.wait_for_work() {
            self.commit(group);
        }
    }

    /// Writes a group and says what is true then.
    fn commit(&self, mut group: Group) {
        // Its bytes do not wait any more: there is room for others.
        self.tell_listener();
        let mut supply = &self.stock;
        let mut is_new = false;
        let outcome = {
            let mut writer = lock(&self.writer);
            writer.write(&mut group, &mut supply, |reached, piece, bytes| match reached {
                Reached::Received(sequence) => self.intake.receive(sequence),
                Reached::Persisted(sequence) => {
                    lock(&self.source.catalog).note(piece, bytes);
                    self.stock.note_left(bytes - piece.offset - piece.range.len() as u64);
                    is_new |= piece.first.is_some();
                    self.intake.persist(sequence);
                }
            })
        };
        self.intake.bring_back(group, outcome);
        self.tell_listener();
        if is_new {
            self.stock.tidy();
        }
    }

    fn tell_listener(&self) {
        if let Some(listener) = &self.listener {
            listener(self.intake.reached(Level::Persisted));
        }
    }

    fn retain(&self) -> Outcome<usize> {
        let _turn = lock(&self.retaining);
        let Source { storage, catalog } = &*self.source;
        let (reserve, retention) = (self.stock.reserve(), self.settings.retention);
        retain(storage, catalog, reserve, retention, &self.holds, unix_ns())
    }
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, OpenError> {
    let started = Builder::new().name(name.to_owned()).spawn(body);
    started.map_err(|error| OpenError::Thread { why: error.to_string() })
}
