//! [`Journal`]: a journal with a committer thread and a preallocator thread.

use crate::append_queue::{AppendQueue, Commit, Durability, Health};
use crate::batch::CommitBatch;
use crate::clock::unix_ns;
use crate::config::JournalConfig;
use crate::cursor::{Cursor, IndexLost, Limit};
use crate::error::{AppendError, OpenError, PersistError, ReadError, WaitError};
use crate::index_file;
use crate::lock::lock;
use crate::open::{Opened, Recovered};
use crate::pin::{RetentionPin, RetentionPins};
use crate::preallocator::Preallocator;
use crate::record::Entry;
use crate::retention::{due, retain};
use crate::start::{Source, Start};
use crate::storage::{Storage, StorageError, StorageResult};
use crate::writer::{Progress, Writer};
use core::fmt;
use core::ops::RangeInclusive;
use lanecast_base::clock::deadline;
use lanecast_base::sync::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Callback after commits, with the last persisted sequence.
type Listener = Box<dyn Fn(u64) + Send + Sync>;

/// State shared with the journal's threads.
struct Shared<S: Storage> {
    append_queue: Arc<AppendQueue>,
    source: Arc<Source<S>>,
    writer: Mutex<Writer<S>>,
    preallocator: Preallocator<S>,
    pins: RetentionPins,
    /// The present by which records age, in nanoseconds since 1970; 0 for the wall clock's.
    unix_ns: AtomicU64,
    /// Held while segments are removed: one retention run at a time.
    retaining: Mutex<()>,
    settings: JournalConfig,
    listener: Option<Listener>,
}

/// A durable log that this process writes.
///
/// Any thread may append. Records that arrive during a synchronization form the next batch (group
/// commit). Batches are written by the committer thread, or by a thread that waits while no other
/// writes.
#[derive(Debug)]
pub struct Journal<S: Storage> {
    shared: Arc<Shared<S>>,
    committer: Option<JoinHandle<()>>,
    preallocator_thread: Option<JoinHandle<()>>,
    recovered: Recovered,
    _lock: S::Lock,
}

impl<S: Storage> fmt::Debug for Shared<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("append_queue", &self.append_queue).finish_non_exhaustive()
    }
}

impl<S: Storage> Journal<S> {
    /// Opens the journal in `storage` for writing; creates it if there is none.
    ///
    /// # Errors
    /// If another process owns it, if durable records are damaged, or if the disk refuses.
    pub fn open(storage: S, settings: JournalConfig) -> Result<Self, OpenError> {
        Self::start(storage, settings, None)
    }

    /// Opens a journal with a `listener`, which the writing thread calls with the last persisted
    /// sequence after each change that a poller may wait for:
    /// [`pending_bytes`](Self::pending_bytes) has fallen, more is
    /// [persisted](Durability::Persisted), or the disk has [failed](Self::failure). It must not
    /// block.
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
            unix_ns: AtomicU64::new(0),
            retaining: Mutex::new(()),
            settings,
            listener,
        });
        let (beside, behind) = (Arc::clone(&shared), Arc::clone(&shared));
        // A segment that cannot be removed now is tried again when the next one is full.
        let preallocator_thread = thread("lanecast-spares", move || {
            // An index that cannot be made now is requested again.
            let restore_index = |number| drop(index_file::restore(&beside.source, number));
            beside.preallocator.run(|| drop(beside.retain()), restore_index);
        })?;
        let mut journal = Self {
            shared,
            committer: None,
            preallocator_thread: Some(preallocator_thread),
            recovered,
            _lock: lock,
        };
        journal.committer = Some(thread("lanecast-commit", move || behind.run_committer())?);
        Ok(journal)
    }

    /// Longest body of a record, in bytes: an append of a longer one fails.
    pub fn longest_body(&self) -> usize {
        usize::try_from(self.shared.settings.longest_body()).unwrap_or(usize::MAX)
    }

    /// Length of new segments, in bytes.
    pub fn segment_bytes(&self) -> u64 {
        self.shared.settings.segment_bytes
    }

    /// Bytes that may wait for the disk before appends are refused.
    pub fn max_pending_bytes(&self) -> usize {
        self.shared.settings.max_pending_bytes
    }

    /// Result of the recovery at opening.
    pub const fn recovered(&self) -> Recovered {
        self.recovered
    }

    /// Appends all of `entries` or none, and returns their sequences (an empty range for no
    /// entries). Never waits for the disk.
    ///
    /// The records are in memory then, and the committer writes them. A crash keeps a prefix of
    /// them.
    ///
    /// # Errors
    /// See [`AppendError`]; `Full` and `NoSpace` are back-pressure.
    pub fn append(&self, entries: &[Entry<'_>]) -> Result<RangeInclusive<u64>, AppendError> {
        self.shared.append_queue.append(entries, Commit::Soon)
    }

    /// As [`append`](Self::append), but the committer leaves the records until
    /// [`flush`](Self::flush), the next `append`, or a thread that [waits](Self::wait): more of
    /// them are written at once. Records that the committer was to write already stay so.
    ///
    /// # Errors
    /// See [`AppendError`]; `Full` and `NoSpace` are back-pressure.
    pub fn append_held(&self, entries: &[Entry<'_>]) -> Result<RangeInclusive<u64>, AppendError> {
        self.shared.append_queue.append(entries, Commit::Held)
    }

    /// Has the committer write the records of [`append_held`](Self::append_held). Never waits for
    /// the disk.
    pub fn flush(&self) {
        self.shared.append_queue.flush();
    }

    /// Appends `entries`, waits until they are persisted, and returns the last sequence.
    ///
    /// # Errors
    /// See [`PersistError`]. After `Wait` the records are accepted and may become persisted later.
    pub fn persist(&self, entries: &[Entry<'_>], timeout: Duration) -> Result<u64, PersistError> {
        let sequences = self.shared.append_queue.append(entries, Commit::ByCaller)?;
        let last = *sequences.end();
        self.wait(last, Durability::Persisted, timeout)?;
        Ok(last)
    }

    /// Waits until record `sequence` has this durability. The caller writes the batch itself if no
    /// other thread does.
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

    /// Last sequence with this durability; 0 if there is none.
    pub fn last_sequence(&self, durability: Durability) -> u64 {
        self.shared.append_queue.last_sequence(durability)
    }

    /// Appended bytes that wait for the disk. At `JournalConfig::max_pending_bytes` appends are
    /// refused, so a publisher should slow down before. 0 while appends are refused for another
    /// reason, such as a full disk.
    pub fn pending_bytes(&self) -> usize {
        self.shared.append_queue.pending_bytes()
    }

    /// State of the disk. Costs one load.
    pub fn health(&self) -> Health {
        self.shared.append_queue.health()
    }

    /// Bytes of the segments that are made, behind the records that were appended: these find space
    /// on the disk, however full it is. A program that gives up old records by writing new ones
    /// stops to write others before that is nothing.
    pub fn room(&self) -> u64 {
        let (segment, left) = self.shared.append_queue.place();
        self.shared.preallocator.room(segment, left)
    }

    /// Whether the last attempt to make a segment has found the disk full, or no free descriptor.
    pub fn is_disk_full(&self) -> bool {
        self.shared.preallocator.is_full()
    }

    /// Has the segment that is being made finished soon, at the cost of the appends in it: the
    /// program waits for its [room](Self::room).
    pub fn hurry_preallocation(&self) {
        self.shared.preallocator.hurry();
    }

    /// Tries again to make the next segment, if the disk had no space for it.
    pub fn retry_preallocation(&self) {
        self.shared.preallocator.retry();
    }

    /// The error after which the journal accepts nothing; `None` if it works.
    pub fn failure(&self) -> Option<StorageError> {
        self.shared.append_queue.failure()
    }

    /// Waits until the configured number of spare segments is preallocated.
    ///
    /// # Errors
    /// If one cannot be made.
    pub fn wait_preallocated(&self) -> StorageResult<()> {
        self.shared.preallocator.wait_for(self.shared.settings.spare_segments)
    }

    /// Removes the segments that the configured retention and the pins release; returns their
    /// count. The preallocator thread does the same after each change of segment.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn apply_retention(&self) -> StorageResult<usize> {
        self.shared.retain()
    }

    /// Sets the present by which records age, in nanoseconds since 1970, in place of the wall
    /// clock's: for a program that dates records by a clock of its own, and goes on to call this.
    pub fn set_time(&self, unix_ns: u64) {
        // Relaxed: a time that is a little older keeps a segment for so much longer.
        self.shared.unix_ns.store(unix_ns, Ordering::Relaxed);
    }

    /// Sequence of the first record behind the oldest segment, if the configured retention is due
    /// to remove that segment, pinned or not.
    pub fn retention_due(&self) -> Option<u64> {
        due(
            &lock(&self.shared.source.catalog),
            self.shared.settings.retention,
            self.shared.unix_ns(),
        )
    }

    /// Asks the preallocator thread to do the same as
    /// [`apply_retention`](Self::apply_retention). Does not wait.
    pub fn request_retention(&self) {
        self.shared.preallocator.request_retention();
    }

    /// Keeps records from `sequence` on until the pin is dropped.
    pub fn pin(&self, sequence: u64) -> RetentionPin {
        self.shared.pins.pin(sequence)
    }

    /// A cursor over the records with this durability.
    ///
    /// # Errors
    /// If the start position was removed or cannot be read.
    pub fn cursor(&self, from: Start, durability: Durability) -> Result<Cursor<S>, ReadError> {
        let limit = Limit { append_queue: Arc::clone(&self.shared.append_queue), durability };
        let source = Arc::clone(&self.shared.source);
        Cursor::new(source, Some(limit), Some(&self.shared.pins), from)
    }

    /// As [`cursor`](Self::cursor), but reads only a part of a segment to find the position: where
    /// a crash has taken a segment's index, which costs reading all of it, the journal's own thread
    /// makes that anew. `None` until it has: the caller tries again later.
    ///
    /// # Errors
    /// If the start position was removed or cannot be read.
    pub fn try_cursor(
        &self,
        from: Start,
        durability: Durability,
    ) -> Result<Option<Cursor<S>>, ReadError> {
        let limit = Limit { append_queue: Arc::clone(&self.shared.append_queue), durability };
        let source = Arc::clone(&self.shared.source);
        let found = Cursor::try_new(source, Some(limit), Some(&self.shared.pins), from)?;
        let lost = |IndexLost(number)| self.shared.preallocator.request_index(number);
        Ok(found.map_err(lost).ok())
    }

    /// Writes all accepted records and closes the journal. Dropping does the same without reporting
    /// errors.
    ///
    /// # Errors
    /// If the disk has failed, or has no space for what is left.
    pub fn close(mut self) -> StorageResult<()> {
        self.end();
        self.failure().map_or(Ok(()), Err)
    }

    fn end(&mut self) {
        // The committer writes what is left and may need a segment for it, so the preallocator ends
        // last.
        self.shared.append_queue.close();
        if let Some(committer) = self.committer.take() {
            let _ = committer.join();
        }
        self.shared.preallocator.close();
        if let Some(preallocator_thread) = self.preallocator_thread.take() {
            let _ = preallocator_thread.join();
        }
    }
}

impl<S: Storage> Drop for Journal<S> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<S: Storage> Shared<S> {
    /// Body of the committer thread.
    fn run_committer(&self) {
        while let Some(batch) = self.append_queue.next_batch() {
            self.commit(batch);
        }
    }

    /// Writes a batch and publishes the progress.
    fn commit(&self, mut batch: CommitBatch) {
        // Taking the batch has freed space in the queue.
        self.notify_listener();
        let mut supply = &self.preallocator;
        let mut is_new = false;
        let outcome = {
            let mut writer = lock(&self.writer);
            writer.write(&mut batch, &mut supply, |reached, part, bytes| match reached {
                Progress::Written(sequence) => self.append_queue.set_written(sequence),
                Progress::Persisted(sequence) => {
                    // The catalog first: a cursor that sees the new sequence must find its segment.
                    lock(&self.source.catalog).add(part, bytes);
                    self.preallocator.set_remaining(bytes - part.offset - part.range.len() as u64);
                    is_new |= part.first.is_some();
                    self.append_queue.set_persisted(sequence);
                }
            })
        };
        self.append_queue.finish_commit(batch, outcome);
        self.notify_listener();
        // A batch has started a segment, so the one before is complete and may be removable.
        if is_new {
            self.preallocator.request_retention();
        }
    }

    fn notify_listener(&self) {
        if let Some(listener) = &self.listener {
            listener(self.append_queue.last_sequence(Durability::Persisted));
        }
    }

    /// The present by which records age.
    fn unix_ns(&self) -> u64 {
        match self.unix_ns.load(Ordering::Relaxed) {
            0 => unix_ns(),
            set => set,
        }
    }

    fn retain(&self) -> StorageResult<usize> {
        // The preallocator and a caller of `apply_retention` may get here at the same time.
        let _turn = lock(&self.retaining);
        // A search makes an index anew if its file cannot be written now.
        let _ = index_file::write_complete(&self.source, self.preallocator.journal());
        let Source { storage, catalog } = &*self.source;
        let (recycler, retention) = (self.preallocator.recycler(), self.settings.retention);
        retain(storage, catalog, recycler, retention, &self.pins, self.unix_ns())
    }
}

fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, OpenError> {
    let started = Builder::new().name(name.to_owned()).spawn(body);
    started.map_err(|error| OpenError::Thread { reason: error.to_string() })
}
