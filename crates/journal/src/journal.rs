//! The journal with threads of its own.

use crate::append_queue::{AppendQueue, Durability, Health};
use crate::batch::CommitBatch;
use crate::config::JournalConfig;
use crate::cursor::{Cursor, Limit, Source, Start};
use crate::error::{AppendError, OpenError, PersistError, ReadError, WaitError};
use crate::lock;
use crate::open::{Opened, Recovered};
use crate::pin::{RetentionPin, RetentionPins};
use crate::preallocator::Preallocator;
use crate::record::Entry;
use crate::retention::retain;
use crate::storage::{Storage, StorageError, StorageResult};
use crate::writer::{Progress, Writer};
use crate::{deadline, unix_ns};
use core::fmt;
use core::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Called whenever the disk has come further, with the last persisted sequence.
type Listener = Box<dyn Fn(u64) + Send + Sync>;

/// Everything behind the intake that touches files.
struct Shared<S: Storage> {
    append_queue: Arc<AppendQueue>,
    source: Arc<Source<S>>,
    writer: Mutex<Writer<S>>,
    preallocator: Preallocator<S>,
    pins: RetentionPins,
    /// Held by whoever removes segments.
    retaining: Mutex<()>,
    settings: JournalConfig,
    listener: Option<Listener>,
}

/// A durable log that this process owns.
///
/// Records are appended by any thread; what arrives while the disk synchronises is written and
/// synchronised together. That happens on the committer's thread, or on the thread of somebody
/// who waits while nobody else writes.
#[derive(Debug)]
pub struct Journal<S: Storage> {
    shared: Arc<Shared<S>>,
    committer: Option<JoinHandle<()>>,
    preparer: Option<JoinHandle<()>>,
    recovered: Recovered,
    _lock: S::Lock,
}

impl<S: Storage> fmt::Debug for Shared<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("append_queue", &self.append_queue).finish_non_exhaustive()
    }
}

impl<S: Storage> Journal<S> {
    /// Opens the journal in `storage` for writing, or makes one.
    ///
    /// # Errors
    /// If another process owns it, if durable records are damaged, or if the disk refuses.
    pub fn open(storage: S, settings: JournalConfig) -> Result<Self, OpenError> {
        Self::start(storage, settings, None)
    }

    /// The same; `listener` is called by the thread that writes, with the last persisted sequence,
    /// whenever it has changed what others may wait for: [`pending_bytes`](Self::waiting_bytes) has
    /// fallen, more is [persisted](Level::Persisted), or the disk has [failed](Self::failure). It
    /// is called after the change, and must not wait.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(
        storage: S,
        settings: JournalConfig,
        listener: impl Fn(u64) + Send + Sync + 'static,
    ) -> Result<Self, OpenError> {
        Self::start(storage, settings, Some(Box::new(listener)))
    }

    fn start(
        storage: S,
        settings: JournalConfig,
        listener: Option<Listener>,
    ) -> Result<Self, OpenError> {
        let opened = Opened::open(&storage, &settings)?;
        let source = Arc::new(Source { storage, catalog: Mutex::new(opened.catalog) });
        let Opened { format, spares, recycler, next_segment, recovered, lock, .. } = opened;
        let (spares_state, wanted) = (Arc::clone(&source), settings.spare_segments);
        let shared = Arc::new(Shared {
            append_queue: Arc::new(AppendQueue::new(opened.encoder, settings.max_pending_bytes)),
            source,
            writer: Mutex::new(Writer::new(opened.current)),
            preallocator: Preallocator::new(
                spares_state,
                recycler,
                format,
                wanted,
                spares,
                next_segment,
            ),
            pins: RetentionPins::default(),
            retaining: Mutex::new(()),
            settings,
            listener,
        });
        let (beside, behind) = (Arc::clone(&shared), Arc::clone(&shared));
        // What cannot be removed now is tried again with the next segment.
        let preparer = thread("lanecast-spares", move || {
            beside.preallocator.run(|| drop(beside.retain()));
        })?;
        let mut journal =
            Self { shared, committer: None, preparer: Some(preparer), recovered, _lock: lock };
        journal.committer = Some(thread("lanecast-commit", move || behind.run_committer())?);
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
        self.shared.append_queue.append(entries, true)
    }

    /// Appends `entries` and waits until they are persisted; gives the last one's sequence.
    ///
    /// # Errors
    /// See [`PersistError`]. After `Wait` they are accepted, and may be persisted later.
    pub fn persist(&self, entries: &[Entry<'_>], timeout: Duration) -> Result<u64, PersistError> {
        let sequences = self.shared.append_queue.append(entries, false)?;
        let last = *sequences.end();
        self.wait(last, Durability::Persisted, timeout)?;
        Ok(last)
    }

    /// Waits until `durability` may be said of record `sequence`. While nobody else writes, the caller
    /// does.
    ///
    /// # Errors
    /// See [`WaitError`].
    pub fn wait(
        &self,
        sequence: u64,
        durability: Durability,
        timeout: Duration,
    ) -> Result<(), WaitError> {
        let deadline = deadline(timeout);
        let append_queue = &self.shared.append_queue;
        while let Some(batch) = append_queue.wait_or_commit(sequence, durability, deadline)? {
            self.shared.commit(batch);
        }
        Ok(())
    }

    /// The last sequence of which `durability` may be said; 0 if there is none.
    pub fn last_sequence(&self, durability: Durability) -> u64 {
        self.shared.append_queue.last_sequence(durability)
    }

    /// How much was appended and waits for the disk, in bytes: from `JournalConfig::max_pending_bytes` on
    /// appending is refused, so those who can slow down should do so before. 0 where appending is
    /// refused for another reason, such as a full disk: who tries is told.
    pub fn pending_bytes(&self) -> usize {
        self.shared.append_queue.pending_bytes()
    }

    /// Whether the disk takes what is appended. Looking costs one load.
    pub fn health(&self) -> Health {
        self.shared.append_queue.health()
    }

    /// Why the journal accepts nothing any more; `None` if it does.
    pub fn failure(&self) -> Option<StorageError> {
        self.shared.append_queue.failure()
    }

    /// Waits until as many segments are ready as the settings say.
    ///
    /// # Errors
    /// If one cannot be made.
    pub fn wait_preallocated(&self) -> StorageResult<()> {
        self.shared.preallocator.wait_for(self.shared.settings.spare_segments)
    }

    /// Removes what the settings' retention and the holds let go; tells how many segments. The
    /// preparer does the same whenever the journal has gone on in another segment.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn apply_retention(&self) -> StorageResult<usize> {
        self.shared.retain()
    }

    /// Keeps records from `sequence` on from being removed.
    pub fn pin(&self, sequence: u64) -> RetentionPin {
        self.shared.pins.pin(sequence)
    }

    /// A cursor over the records of which `durability` may be said.
    ///
    /// # Errors
    /// If what it should start with is gone, or cannot be read.
    pub fn cursor(&self, from: Start, durability: Durability) -> Result<Cursor<S>, ReadError> {
        let limit = Limit { append_queue: Arc::clone(&self.shared.append_queue), durability };
        let source = Arc::clone(&self.shared.source);
        Cursor::new(source, Some(limit), Some(&self.shared.pins), from)
    }

    /// Writes what is left, and ends. Dropping does the same and tells nobody.
    ///
    /// # Errors
    /// If the disk has failed, or has no space for what is left.
    pub fn close(mut self) -> StorageResult<()> {
        self.end();
        self.failure().map_or(Ok(()), Err)
    }

    fn end(&mut self) {
        self.shared.append_queue.close();
        if let Some(committer) = self.committer.take() {
            let _ = committer.join();
        }
        self.shared.preallocator.close();
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

impl<S: Storage> Shared<S> {
    /// The committer's thread.
    fn run_committer(&self) {
        while let Some(batch) = self.append_queue.next_batch() {
            self.commit(batch);
        }
    }

    /// Writes a group and says what is true then.
    fn commit(&self, mut batch: CommitBatch) {
        // Its bytes do not wait any more: there is room for others.
        self.notify_listener();
        let mut supply = &self.preallocator;
        let mut is_new = false;
        let outcome = {
            let mut writer = lock(&self.writer);
            writer.write(&mut batch, &mut supply, |reached, part, bytes| match reached {
                Progress::Written(sequence) => self.append_queue.receive(sequence),
                Progress::Persisted(sequence) => {
                    lock(&self.source.catalog).note(part, bytes);
                    self.preallocator.set_remaining(bytes - part.offset - part.range.len() as u64);
                    is_new |= part.first.is_some();
                    self.append_queue.persist(sequence);
                }
            })
        };
        self.append_queue.finish_commit(batch, outcome);
        self.notify_listener();
        if is_new {
            self.preallocator.request_retention();
        }
    }

    fn notify_listener(&self) {
        if let Some(listener) = &self.listener {
            listener(self.append_queue.last_sequence(Durability::Persisted));
        }
    }

    fn retain(&self) -> StorageResult<usize> {
        let _turn = lock(&self.retaining);
        let Source { storage, catalog } = &*self.source;
        let (recycler, retention) = (self.preallocator.recycler(), self.settings.retention);
        retain(storage, catalog, recycler, retention, &self.pins, unix_ns())
    }
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, OpenError> {
    let started = Builder::new().name(name.to_owned()).spawn(body);
    started.map_err(|error| OpenError::Thread { reason: error.to_string() })
}
