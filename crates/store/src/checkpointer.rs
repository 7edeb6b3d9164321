//! The thread that follows a store's log behind the server and writes checkpoints.

use crate::checkpoint::{Checkpoints, Recovered, Replica};
use crate::error::DirectoryError;
use crate::record_heads::{RecordHead, RecordHeads};
use lanecast_journal::{Cursor, RetentionPin, Start, Storage};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Interval at which new records are taken over. Their heads wait in memory until then.
const INTERVAL: Duration = Duration::from_millis(200);
/// Intervals after a failed checkpoint until retention has another one written.
const PAUSES: u32 = 5;
/// Records between two looks at whether to end, and whether a checkpoint is due.
const STEP: usize = 4_096;
/// Most bytes of heads that wait, twice: those that the thread takes over, and those that come
/// meanwhile. Enough for 700,000 records in each, more than come in an interval.
pub(crate) const HEADS_BYTES: usize = 32 << 20;

#[derive(Debug)]
struct State {
    /// Set when the thread has to end, to whether it writes a last checkpoint.
    ends: Option<bool>,
    /// Records since the thread last looked.
    heads: RecordHeads,
    /// Records whose heads found no room.
    left_out: u64,
    written: u64,
    /// Position of the last checkpoint.
    covered: u64,
    /// Records from this one on are needed by the checkpoints.
    needed: u64,
    /// Records before this one should not be.
    released: u64,
    /// The journal cannot be read: the store has to end.
    error: Option<DirectoryError>,
    /// Reason why the last checkpoint could not be written; the next one follows.
    failure: Option<String>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn new(heads_bytes: usize) -> Self {
        let heads = RecordHeads::new(heads_bytes);
        let state = State {
            ends: None,
            heads,
            left_out: 0,
            written: 0,
            covered: 0,
            needed: 1,
            released: 0,
            error: None,
            failure: None,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handle of the thread. The store's log owns it; dropping it ends the thread without a checkpoint.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    shared: Arc<Shared>,
    pin: Arc<RetentionPin>,
    thread: Option<JoinHandle<()>>,
}

/// State of the thread.
struct Task<S: Storage> {
    shared: Arc<Shared>,
    storage: S,
    replica: Replica,
    /// Records that are not durable yet, or were not when the thread last looked.
    heads: RecordHeads,
    cursor: Cursor<S>,
    checkpoints: Checkpoints,
    /// Keeps the records behind the older one of the checkpoints.
    pin: Arc<RetentionPin>,
    /// Bytes of records between two checkpoints.
    interval_bytes: u64,
    /// Bytes of records up to the last checkpoint, or the last attempt.
    last_bytes: u64,
    /// Position of the last checkpoint.
    covered: u64,
    /// Intervals until checkpoints are tried again that retention waits for, after a failure.
    pauses: u32,
}

impl Checkpointer {
    /// Starts the thread with a copy of what was recovered.
    pub(crate) fn start<S: Storage>(
        storage: S,
        recovered: Recovered<S>,
        pin: RetentionPin,
        interval_bytes: u64,
        heads_bytes: usize,
    ) -> std::io::Result<Self> {
        let Recovered { replica, cursor, checkpoints, recovery } = recovered;
        pin.move_to(checkpoints.needed());
        let pin = Arc::new(pin);
        let shared = Arc::new(Shared::new(heads_bytes));
        let covered = recovery.checkpoint.unwrap_or(0);
        {
            let mut state = shared.lock();
            (state.covered, state.needed) = (covered, checkpoints.needed());
        }
        let mut task = Task {
            shared: Arc::clone(&shared),
            storage,
            // After a long replay the next start shall not repeat it.
            last_bytes: if recovery.checkpoint.is_some() {
                replica.catalog.journal_bytes
            } else {
                0
            },
            covered,
            pauses: 0,
            replica,
            heads: RecordHeads::new(heads_bytes),
            cursor,
            checkpoints,
            pin: Arc::clone(&pin),
            interval_bytes: interval_bytes.max(1),
        };
        let thread = Builder::new().name("lanecast-checkpt".into()).spawn(move || task.run())?;
        Ok(Self { shared, pin, thread: Some(thread) })
    }

    /// Pin of the records that the checkpoints need, to be held until the journal has ended.
    pub(crate) fn pin(&self) -> Arc<RetentionPin> {
        Arc::clone(&self.pin)
    }

    /// The log has appended a record.
    pub(crate) fn add(&self, head: RecordHead<'_>) {
        let mut state = self.shared.lock();
        let has_room = state.heads.add(head);
        state.left_out += u64::from(!has_room);
    }

    /// Has checkpoints written before they are due, until none needs the records before `cut`.
    /// Returns whether they wait for a record behind `appended`, the last one.
    pub(crate) fn release(&self, cut: u64, appended: u64) -> bool {
        let mut state = self.shared.lock();
        state.released = state.released.max(cut);
        state.needed < cut && state.covered >= appended
    }

    /// Number of records whose heads found no room: they are read back.
    pub(crate) fn left_out(&self) -> u64 {
        self.shared.lock().left_out
    }

    /// Number of checkpoints written.
    pub(crate) fn written(&self) -> u64 {
        self.shared.lock().written
    }

    /// The error after which the journal cannot be read.
    pub(crate) fn take_error(&self) -> Option<DirectoryError> {
        self.shared.lock().error.take()
    }

    /// Reason why the last checkpoint could not be written.
    pub(crate) fn failure(&self) -> Option<String> {
        self.shared.lock().failure.clone()
    }

    /// Ends the thread after a last checkpoint of all that is durable.
    pub(crate) fn finish(mut self) {
        self.end(true);
    }

    fn end(&mut self, is_in_order: bool) {
        self.shared.lock().ends = Some(is_in_order);
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end(false);
        }
    }
}

impl<S: Storage> Task<S> {
    fn run(&mut self) {
        loop {
            // Before the records: all of them are there when the thread is to end.
            let ends = self.shared.lock().ends;
            if ends == Some(false) {
                return;
            }
            let is_at_end = match self.follow(ends.is_some()) {
                Ok(is_at_end) => is_at_end,
                // Nothing was taken over in part. At the end the next start reads the records.
                Err(DirectoryError::Read(error)) if error.may_pass() => {
                    self.shared.lock().failure = Some(error.to_string());
                    true
                }
                Err(error) => {
                    self.shared.lock().error = Some(error);
                    return;
                }
            };
            if is_at_end {
                if ends.is_some() {
                    return;
                }
                self.sleep();
            }
        }
    }

    /// Takes over records that are durable by now, and writes a checkpoint if one is due; returns
    /// whether those were all.
    fn follow(&mut self, is_ending: bool) -> Result<bool, DirectoryError> {
        let (end, mut count) = (self.cursor.end(), 0);
        // Those that are left from the last time, and then the new ones: no more, since the server
        // goes on adding.
        for is_new in [false, true] {
            if is_new && self.heads.is_empty() {
                // The empty queue goes back for its memory.
                std::mem::swap(&mut self.heads, &mut self.shared.lock().heads);
            }
            while count < STEP
                && let Some(head) = self.heads.take(end)
            {
                self.replica.follow(head)?;
                count += 1;
            }
            count += self.read_back(STEP - count)?;
        }
        let new = self.replica.catalog.journal_bytes - self.last_bytes;
        let is_at_end = count < STEP;
        let is_waited_for = is_at_end && self.is_waited_for();
        if new >= self.interval_bytes || (is_ending && is_at_end) || is_waited_for {
            self.write()?;
        }
        Ok(is_at_end)
    }

    /// Whether retention waits for a checkpoint.
    fn is_waited_for(&mut self) -> bool {
        let released = self.shared.lock().released;
        if self.checkpoints.needed() >= released || self.replica.position() == self.covered {
            return false;
        }
        let is_paused = self.pauses > 0;
        self.pauses = self.pauses.saturating_sub(1);
        !is_paused
    }

    /// Takes over records whose heads found no room, from the journal, at most `limit` of them and
    /// no more than are durable; returns their number.
    fn read_back(&mut self, limit: usize) -> Result<usize, DirectoryError> {
        let Some(positions) = self.heads.left_out().filter(|_| limit > 0) else { return Ok(0) };
        self.cursor.move_to(Start::Sequence(positions.start))?;
        for (count, position) in positions.enumerate().take(limit) {
            let Some(record) = self.cursor.read()? else { return Ok(count) };
            self.replica.follow(RecordHead::of(&record))?;
            self.heads.on_read_back(position);
        }
        Ok(limit)
    }

    fn write(&mut self) -> Result<(), DirectoryError> {
        // After a failure the next attempt comes an interval later, or after a pause: a full disk
        // is not tried again and again.
        self.last_bytes = self.replica.catalog.journal_bytes;
        if self.replica.position() == self.covered {
            return Ok(());
        }
        self.replica.read_back(&mut self.cursor)?;
        let outcome = self.checkpoints.write(&self.storage, &self.replica);
        self.pin.move_to(self.checkpoints.needed());
        let mut state = self.shared.lock();
        match outcome {
            Ok(()) => {
                self.covered = self.replica.position();
                state.written += 1;
                (state.covered, state.needed) = (self.covered, self.checkpoints.needed());
                state.failure = None;
            }
            Err(error) => {
                self.pauses = PAUSES;
                state.failure = Some(error.to_string());
            }
        }
        Ok(())
    }

    fn sleep(&self) {
        let state = self.shared.lock();
        if state.ends.is_none() {
            drop(self.shared.changed.wait_timeout(state, INTERVAL));
        }
    }
}
