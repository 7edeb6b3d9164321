//! Where records wait to be written, and where threads wait for them to be.
//!
//! Appenders, waiters, cursors and whoever commits meet here. Nothing here touches a file.

use crate::batch::CommitBatch;
use crate::encoder::Encoder;
use crate::error::{AppendError, WaitError};
use crate::lock;
use crate::record::Entry;
use crate::storage::{StorageError, StorageErrorKind, StorageResult};
use core::mem;
use core::ops::RangeInclusive;
use lanecast_base::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between two attempts while there is no space.
const RETRY: Duration = Duration::from_millis(50);

/// What may be said of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It was written: it survives the death of the process, not that of the machine.
    Written,
    /// It was written and synchronised: it survives both.
    Persisted,
}

/// Whether the disk takes what is appended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// It does.
    #[default]
    Good,
    /// It is full: appending goes on when there is space.
    NoSpace,
    /// It has failed: nothing is appended any more. See `Journal::failure`.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    NoSpace,
    Failed(StorageError),
    Closing,
}

#[derive(Debug)]
struct State {
    encoder: Encoder,
    /// What was appended and nobody writes yet.
    batch: CommitBatch,
    /// What could not be written for lack of space.
    stalled: Option<CommitBatch>,
    /// An empty one, for its memory.
    idle: CommitBatch,
    phase: Phase,
    is_committing: bool,
    /// The committer sleeps: whoever has work for it wakes it.
    is_committer_asleep: bool,
    /// How many wait for records that are only to be received.
    written_waiters: usize,
}

/// Where records wait to be written.
#[derive(Debug)]
pub(crate) struct AppendQueue {
    state: Mutex<State>,
    work: Condvar,
    changed: Condvar,
    received: AtomicU64,
    persisted: AtomicU64,
    /// What [`pending_bytes`](Self::waiting_bytes) tells: written under the lock, read without.
    waiting: AtomicUsize,
    /// The same of [`health`](Self::health).
    health: AtomicU32,
    max_pending_bytes: usize,
}

impl AppendQueue {
    /// Of a journal that goes on with `encoder`; all before that is persisted.
    pub(crate) fn new(encoder: Encoder, max_pending_bytes: usize) -> Self {
        let last = encoder.next() - 1;
        Self {
            state: Mutex::new(State {
                encoder,
                batch: CommitBatch::default(),
                stalled: None,
                idle: CommitBatch::default(),
                phase: Phase::Open,
                is_committing: false,
                is_committer_asleep: false,
                written_waiters: 0,
            }),
            work: Condvar::new(),
            changed: Condvar::new(),
            received: AtomicU64::new(last),
            persisted: AtomicU64::new(last),
            waiting: AtomicUsize::new(0),
            health: AtomicU32::new(Health::Good as u32),
            max_pending_bytes,
        }
    }

    /// The last sequence of which `durability` may be said.
    pub(crate) fn last_sequence(&self, durability: Durability) -> u64 {
        match durability {
            // PAIRS(journal-received): acquire here, release in `receive`.
            Durability::Written => self.received.load(Ordering::Acquire),
            // PAIRS(journal-persisted): acquire here, release in `persist`.
            Durability::Persisted => self.persisted.load(Ordering::Acquire),
        }
    }

    /// Bytes that were appended and nobody writes yet; none if nothing is taken for another reason.
    pub(crate) fn pending_bytes(&self) -> usize {
        // Relaxed: a level that others change at any time; no memory is handed over by it.
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether the disk takes what is appended.
    pub(crate) fn health(&self) -> Health {
        const NO_SPACE: u32 = Health::NoSpace as u32;
        const FAILED: u32 = Health::Failed as u32;
        // Relaxed, as above; why it failed is read under the lock.
        match self.health.load(Ordering::Relaxed) {
            NO_SPACE => Health::NoSpace,
            FAILED => Health::Failed,
            _ => Health::Good,
        }
    }

    /// Has [`pending_bytes`](Self::waiting_bytes) tell what is true of `state`, which has changed.
    fn note_waiting(&self, state: &State) {
        let waiting = if state.phase == Phase::Open { state.batch.bytes.len() } else { 0 };
        self.waiting.store(waiting, Ordering::Relaxed);
    }

    fn note_health(&self, state: &State) {
        let health = match state.phase {
            Phase::Open | Phase::Closing => Health::Good,
            Phase::NoSpace => Health::NoSpace,
            Phase::Failed(_) => Health::Failed,
        };
        self.health.store(health as u32, Ordering::Relaxed);
    }

    /// Takes all of `entries` or none. The committer is told only if `wakes`.
    pub(crate) fn append(
        &self,
        entries: &[Entry<'_>],
        wakes: bool,
    ) -> Result<RangeInclusive<u64>, AppendError> {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        match state.phase {
            Phase::Open => {}
            Phase::NoSpace => return Err(AppendError::NoSpace),
            Phase::Failed(_) | Phase::Closing => return Err(AppendError::Failed),
        }
        if state.batch.bytes.len() >= self.max_pending_bytes {
            return Err(AppendError::Full);
        }
        entries.iter().try_for_each(|entry| state.encoder.check(entry.body))?;
        let first = state.encoder.next();
        let durable = self.persisted.load(Ordering::Relaxed);
        for entry in entries {
            state.encoder.encode(entry, durable, &mut state.batch);
        }
        let last = state.encoder.next() - 1;
        self.note_waiting(state);
        if wakes {
            self.wake(guard);
        }
        Ok(first..=last)
    }

    /// Wakes the committer if it sleeps and there is work that nobody does.
    fn wake(&self, mut state: MutexGuard<'_, State>) {
        if state.is_committer_asleep && !state.is_committing && !state.batch.is_empty() {
            state.is_committer_asleep = false;
            drop(state);
            self.work.notify_one();
        }
    }

    /// The next group to write, once there is one; `None` when it is all done and closing.
    /// Whoever gets it brings it back.
    pub(crate) fn next_batch(&self) -> Option<CommitBatch> {
        let mut state = lock(&self.state);
        loop {
            if state.stalled.is_some() && !state.is_committing {
                let waited = self.work.wait_timeout(state, RETRY);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                state.is_committing = true;
                return state.stalled.take();
            }
            if let Some(batch) = self.take(&mut state) {
                return Some(batch);
            }
            match state.phase {
                Phase::Failed(_) => return None,
                Phase::Closing if !state.is_committing => return None,
                _ => {}
            }
            state.is_committer_asleep = true;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.is_committer_asleep = false;
        }
    }

    /// All up to `sequence` is written.
    pub(crate) fn receive(&self, sequence: u64) {
        // PAIRS(journal-received): release here, acquire in `reached`.
        self.received.store(sequence, Ordering::Release);
        if lock(&self.state).written_waiters > 0 {
            self.changed.notify_all();
        }
    }

    /// All up to `sequence` is durable; who waits for it hears of it when the group comes back.
    pub(crate) fn persist(&self, sequence: u64) {
        // PAIRS(journal-persisted): release here, acquire in `reached`.
        self.persisted.store(sequence, Ordering::Release);
    }

    /// A group was written, or was not.
    pub(crate) fn finish_commit(&self, mut batch: CommitBatch, outcome: StorageResult<()>) {
        let mut state = lock(&self.state);
        state.is_committing = false;
        match outcome {
            Ok(()) => {
                batch.clear();
                state.idle = batch;
                if state.phase == Phase::NoSpace {
                    state.phase = Phase::Open;
                }
            }
            Err(error)
                if error.kind == StorageErrorKind::NoSpace && state.phase != Phase::Closing =>
            {
                state.stalled = Some(batch);
                state.phase = Phase::NoSpace;
            }
            Err(error) => state.phase = Phase::Failed(error),
        }
        self.note_waiting(&state);
        self.note_health(&state);
        let is_needed =
            state.is_committer_asleep && (!state.batch.is_empty() || state.phase != Phase::Open);
        drop(state);
        if is_needed {
            self.work.notify_one();
        }
        self.changed.notify_all();
    }

    /// Waits until `durability` may be said of `sequence`, or until there is a group that nobody
    /// writes.
    pub(crate) fn wait_or_commit(
        &self,
        sequence: u64,
        durability: Durability,
        deadline: Instant,
    ) -> Result<Option<CommitBatch>, WaitError> {
        let mut state = lock(&self.state);
        if sequence >= state.encoder.next() {
            return Err(WaitError::UnknownSequence);
        }
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

    /// Waits until `durability` may be said of `sequence`, whoever sees to that.
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
        if left.is_zero() {
            let is_full = state.phase == Phase::NoSpace;
            return Err(if is_full { WaitError::NoSpace } else { WaitError::TimedOut });
        }
        let written_waiters = usize::from(durability == Durability::Written);
        state.written_waiters += written_waiters;
        let waited = self.changed.wait_timeout(state, left);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.written_waiters -= written_waiters;
        Ok(state)
    }

    /// Accepts nothing more; what was accepted is still written.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        if !matches!(state.phase, Phase::Failed(_)) {
            state.phase = Phase::Closing;
        }
        self.note_waiting(&state);
        drop(state);
        self.work.notify_all();
    }

    /// Why the journal accepts nothing any more.
    pub(crate) fn failure(&self) -> Option<StorageError> {
        match &lock(&self.state).phase {
            Phase::Failed(error) => Some(error.clone()),
            _ => None,
        }
    }

    /// The group to write, if there is one and nobody writes.
    fn take(&self, state: &mut State) -> Option<CommitBatch> {
        let is_open = matches!(state.phase, Phase::Open | Phase::Closing);
        if state.is_committing || !is_open || state.stalled.is_some() || state.batch.is_empty() {
            return None;
        }
        state.is_committing = true;
        let idle = mem::take(&mut state.idle);
        let batch = mem::replace(&mut state.batch, idle);
        self.note_waiting(state);
        Some(batch)
    }
}
