//! The append queue: the pending batch, and the threads that wait for durability.
//!
//! Shared by appenders, waiters, cursors and the committer. Touches no file: a thread that takes a
//! batch writes it outside of the lock and returns it with
//! [`finish_commit`](AppendQueue::finish_commit). At most one batch is being written.

use crate::batch::CommitBatch;
use crate::encoder::Encoder;
use crate::error::{AppendError, WaitError};
use crate::lock::lock;
use crate::record::Entry;
use crate::storage::{StorageError, StorageResult};
use core::mem;
use core::ops::RangeInclusive;
use lanecast_base::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval between attempts to write while the disk is full.
const RETRY: Duration = Duration::from_millis(50);

/// Durability of a record: the crash that it survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Written to the file: survives the end of the process, not of the machine.
    Written,
    /// Written and synchronized: survives a crash of the machine.
    Persisted,
}

/// State of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Appends are written.
    #[default]
    Good,
    /// The disk is full, or no file descriptor is free for the next segment; appending continues by
    /// itself when there is one.
    NoSpace,
    /// The disk has failed; the journal accepts nothing any more. See `Journal::failure`.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    NoSpace,
    Failed(StorageError),
    Closing,
}

/// The committer's part after an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Commit {
    /// The committer writes the records as soon as it can.
    Soon,
    /// The caller is going to write them.
    ByCaller,
    /// The committer leaves them until [`flush`](AppendQueue::flush), the next append that does not
    /// hold, or a thread that waits.
    Held,
}

#[derive(Debug)]
struct State {
    encoder: Encoder,
    /// Appended records that are not being written yet.
    batch: CommitBatch,
    /// The committer leaves the batch until it is flushed.
    is_held: bool,
    /// Batch that could not be written for lack of space.
    stalled: Option<CommitBatch>,
    /// Empty batch, kept for its buffers.
    idle: CommitBatch,
    phase: Phase,
    is_committing: bool,
    /// The committer thread waits on `work`.
    is_committer_asleep: bool,
    /// Number of threads that wait for `Written` only.
    written_waiters: usize,
}

/// Pending records and commit progress of a journal.
#[derive(Debug)]
pub(crate) struct AppendQueue {
    state: Mutex<State>,
    work: Condvar,
    changed: Condvar,
    written: AtomicU64,
    persisted: AtomicU64,
    /// Mirror of the pending bytes: written under the lock, read without it.
    pending: AtomicUsize,
    /// Mirror of the health, likewise.
    health: AtomicU32,
    max_pending_bytes: usize,
}

impl AppendQueue {
    /// A queue that continues with `encoder`; all records before that are persisted.
    pub(crate) fn new(encoder: Encoder, max_pending_bytes: usize) -> Self {
        // Recovery has verified all records before the encoder's next one on disk.
        let last = encoder.next() - 1;
        Self {
            state: Mutex::new(State {
                encoder,
                batch: CommitBatch::default(),
                is_held: false,
                stalled: None,
                idle: CommitBatch::default(),
                phase: Phase::Open,
                is_committing: false,
                is_committer_asleep: false,
                written_waiters: 0,
            }),
            work: Condvar::new(),
            changed: Condvar::new(),
            written: AtomicU64::new(last),
            persisted: AtomicU64::new(last),
            pending: AtomicUsize::new(0),
            health: AtomicU32::new(Health::Good as u32),
            max_pending_bytes,
        }
    }

    /// Last sequence with this durability.
    pub(crate) fn last_sequence(&self, durability: Durability) -> u64 {
        match durability {
            // PAIRS(journal-written): acquire here, release in `set_written`.
            Durability::Written => self.written.load(Ordering::Acquire),
            // PAIRS(journal-persisted): acquire here, release in `set_persisted`.
            Durability::Persisted => self.persisted.load(Ordering::Acquire),
        }
    }

    /// Bytes that are not being written yet; 0 unless the queue accepts records.
    pub(crate) fn pending_bytes(&self) -> usize {
        // Relaxed: an estimate for flow control; it publishes no memory.
        self.pending.load(Ordering::Relaxed)
    }

    /// Segment of the next record, and the bytes that are left there.
    pub(crate) fn place(&self) -> (u64, u64) {
        lock(&self.state).encoder.place()
    }

    /// State of the disk.
    pub(crate) fn health(&self) -> Health {
        const NO_SPACE: u32 = Health::NoSpace as u32;
        const FAILED: u32 = Health::Failed as u32;
        // Relaxed, as above; the cause of a failure is read under the lock.
        match self.health.load(Ordering::Relaxed) {
            NO_SPACE => Health::NoSpace,
            FAILED => Health::Failed,
            _ => Health::Good,
        }
    }

    /// Updates the mirror of the pending bytes after a change of `state`.
    fn publish_pending(&self, state: &State) {
        // A closed or failed queue accepts nothing, so its bytes must not pause publishers.
        let waiting = if state.phase == Phase::Open { state.batch.length() } else { 0 };
        self.pending.store(waiting, Ordering::Relaxed);
    }

    fn publish_health(&self, state: &State) {
        let health = match state.phase {
            Phase::Open | Phase::Closing => Health::Good,
            Phase::NoSpace => Health::NoSpace,
            Phase::Failed(_) => Health::Failed,
        };
        self.health.store(health as u32, Ordering::Relaxed);
    }

    /// Appends all of `entries` or none.
    pub(crate) fn append(
        &self,
        entries: &[Entry<'_>],
        commit: Commit,
    ) -> Result<RangeInclusive<u64>, AppendError> {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        match state.phase {
            Phase::Open => {}
            Phase::NoSpace => return Err(AppendError::NoSpace),
            Phase::Failed(_) | Phase::Closing => return Err(AppendError::Failed),
        }
        // The limit is checked before the append, so one call may exceed it by its own length.
        if state.batch.length() >= self.max_pending_bytes {
            // Held records would never make room.
            self.release(guard);
            return Err(AppendError::Full);
        }
        entries.iter().try_for_each(|entry| state.encoder.check(entry))?;
        let first = state.encoder.next();
        // Relaxed: an older value only makes `unsynced` larger, which is safe.
        let durable = self.persisted.load(Ordering::Relaxed);
        state.is_held = commit == Commit::Held && (state.is_held || state.batch.is_empty());
        for entry in entries {
            state.encoder.encode(entry, durable, &mut state.batch);
        }
        let last = state.encoder.next() - 1;
        self.publish_pending(state);
        if commit == Commit::Soon {
            self.wake(guard);
        }
        Ok(first..=last)
    }

    /// Has the committer write held records as soon as it can.
    pub(crate) fn flush(&self) {
        self.release(lock(&self.state));
    }

    fn release(&self, mut state: MutexGuard<'_, State>) {
        if mem::take(&mut state.is_held) {
            self.wake(state);
        }
    }

    /// Wakes the committer if it sleeps and a batch waits.
    fn wake(&self, mut state: MutexGuard<'_, State>) {
        // While a batch is being written, `finish_commit` wakes the committer; waking it now would
        // only cost a context switch.
        let is_waiting = !state.batch.is_empty() && !state.is_held;
        if state.is_committer_asleep && !state.is_committing && is_waiting {
            state.is_committer_asleep = false;
            drop(state);
            self.work.notify_one();
        }
    }

    /// Waits for the next batch; `None` once everything is written and the queue is closing. The
    /// caller returns the batch with [`finish_commit`](Self::finish_commit).
    pub(crate) fn next_batch(&self) -> Option<CommitBatch> {
        let mut state = lock(&self.state);
        loop {
            if state.stalled.is_some() && !state.is_committing {
                let waited = self.work.wait_timeout(state, RETRY);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                // The stalled batch goes first: later records continue its checksum chain.
                state.is_committing = true;
                return state.stalled.take();
            }
            if let Some(batch) = self.take(&mut state) {
                return Some(batch);
            }
            match state.phase {
                Phase::Failed(_) => return None,
                // A waiter may still be writing the last batch, and may hand it back as stalled.
                Phase::Closing if !state.is_committing => return None,
                _ => {}
            }
            state.is_committer_asleep = true;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.is_committer_asleep = false;
        }
    }

    /// All records up to `sequence` are written.
    pub(crate) fn set_written(&self, sequence: u64) {
        // PAIRS(journal-written): release here, acquire in `last_sequence`.
        self.written.store(sequence, Ordering::Release);
        // Waiters for `Persisted` are woken by `finish_commit`; waking them here would be wasted.
        if lock(&self.state).written_waiters > 0 {
            self.changed.notify_all();
        }
    }

    /// All records up to `sequence` are durable. Waiters wake up in
    /// [`finish_commit`](Self::finish_commit).
    pub(crate) fn set_persisted(&self, sequence: u64) {
        // PAIRS(journal-persisted): release here, acquire in `last_sequence`.
        self.persisted.store(sequence, Ordering::Release);
    }

    /// Takes a batch back after an attempt to write it, and wakes waiters.
    pub(crate) fn finish_commit(&self, mut batch: CommitBatch, outcome: StorageResult<()>) {
        let mut state = lock(&self.state);
        state.is_committing = false;
        match outcome {
            Ok(()) => {
                // Keeps the batch's buffers for the next one: two batches alternate.
                batch.clear();
                state.idle = batch;
                if state.phase == Phase::NoSpace {
                    state.phase = Phase::Open;
                }
            }
            Err(error)
                // A full disk heals, unless the journal is closing: nothing would retry then.
                if error.may_pass() && state.phase != Phase::Closing =>
            {
                state.stalled = Some(batch);
                state.phase = Phase::NoSpace;
            }
            Err(error) => state.phase = Phase::Failed(error),
        }
        self.publish_pending(&state);
        self.publish_health(&state);
        // Decided under the lock, notified after it: the committer does not wake up into a held
        // lock.
        let is_waiting = !state.batch.is_empty() && !state.is_held;
        let is_needed = state.is_committer_asleep && (is_waiting || state.phase != Phase::Open);
        drop(state);
        if is_needed {
            self.work.notify_one();
        }
        self.changed.notify_all();
    }

    /// Waits until `sequence` has this durability (`None`), or until a batch waits that the caller
    /// is to write: a single appender commits on its own thread, without a switch to the committer.
    pub(crate) fn wait_or_commit(
        &self,
        sequence: u64,
        durability: Durability,
        deadline: Instant,
    ) -> Result<Option<CommitBatch>, WaitError> {
        let mut state = lock(&self.state);
        // Otherwise a wait for a sequence that was never appended would time out.
        if sequence >= state.encoder.next() {
            return Err(WaitError::UnknownSequence);
        }
        // If another thread writes now, this one or the committer takes the batch after it.
        state.is_held &= self.last_sequence(durability) >= sequence;
        loop {
            if self.last_sequence(durability) >= sequence {
                return Ok(None);
            }
            if let Some(batch) = self.take(&mut state) {
                return Ok(Some(batch));
            }
            state = self.sleep(state, durability, deadline)?;
        }
    }

    /// Waits until `sequence` has this durability; never takes a batch.
    pub(crate) fn wait(
        &self,
        sequence: u64,
        durability: Durability,
        deadline: Instant,
    ) -> Result<(), WaitError> {
        let mut state = lock(&self.state);
        while self.last_sequence(durability) < sequence {
            state = self.sleep(state, durability, deadline)?;
        }
        Ok(())
    }

    fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        durability: Durability,
        deadline: Instant,
    ) -> Result<MutexGuard<'a, State>, WaitError> {
        if matches!(state.phase, Phase::Failed(_)) {
            return Err(WaitError::Failed);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        // A full disk is the more useful answer than a timeout.
        if left.is_zero() {
            let is_full = state.phase == Phase::NoSpace;
            return Err(if is_full { WaitError::NoSpace } else { WaitError::TimedOut });
        }
        let written_waiters = usize::from(durability == Durability::Written);
        // Counted, so that the writer can skip the wakeup between write and synchronization.
        state.written_waiters += written_waiters;
        let waited = self.changed.wait_timeout(state, left);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.written_waiters -= written_waiters;
        Ok(state)
    }

    /// Refuses further appends. Accepted records are still written.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        if !matches!(state.phase, Phase::Failed(_)) {
            state.phase = Phase::Closing;
        }
        state.is_held = false;
        self.publish_pending(&state);
        drop(state);
        self.work.notify_all();
    }

    /// The error after which the journal accepts nothing.
    pub(crate) fn failure(&self) -> Option<StorageError> {
        match &lock(&self.state).phase {
            Phase::Failed(error) => Some(error.clone()),
            _ => None,
        }
    }

    /// Takes the pending batch if no batch is being written.
    fn take(&self, state: &mut State) -> Option<CommitBatch> {
        let is_open = matches!(state.phase, Phase::Open | Phase::Closing);
        let is_ready = is_open && !state.is_held && !state.batch.is_empty();
        if !is_ready || state.is_committing || state.stalled.is_some() {
            return None;
        }
        state.is_committing = true;
        // Swaps buffers: appenders fill the idle batch while this one is written.
        let idle = mem::take(&mut state.idle);
        let batch = mem::replace(&mut state.batch, idle);
        self.publish_pending(state);
        Some(batch)
    }
}
