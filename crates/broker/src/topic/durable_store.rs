//! The store of durable topics: changes on their way into the journal, acknowledgements that wait
//! for them, and checkpoints. The server's thread owns it; the journal writes on a thread of its
//! own and signals an eventfd.

use crate::command::acknowledgement::PendingAck;
use crate::command::error::CommandError;
use crate::config::storage::StorageConfig;
use crate::ids::ClientId;
use crate::time::Nanos;
use crate::topic::checkpoint::Checkpointer;
use lanecast_journal::{
    Directory, Durability, Health, Retention, Storage as _, StorageError, StorageErrorKind,
};
use lanecast_os::event::ArmedEvent;
use lanecast_sow::durable::{ClientSequence, Schema, SowStore, SowStoreError, WriteError};
use lanecast_sow::{Change, Key, Publication, Topic, TopicDefinition, ViewDefinition};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Interval of checks whether a checkpoint's thread has finished.
const POLL_CHECKPOINT_NS: Nanos = 10_000_000;
/// Log lines kept until they are taken; later ones are dropped.
const LOG_LINES_MAX: usize = 16;

/// Counters of failures.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StorageCounters {
    pub(crate) not_stored: u64,
    pub(crate) disk_full: u64,
    pub(crate) disk_failed: u64,
    pub(crate) checkpoints_failed: u64,
}

/// The store of all durable topics.
#[derive(Debug)]
pub(crate) struct DurableStore {
    /// Dropped first: it joins its threads before the archive unlocks the directory.
    checkpointer: Checkpointer,
    archive: SowStore<Directory>,
    /// Acknowledgements that wait, with the journal position that they wait for.
    pending_acks: VecDeque<(u64, PendingAck)>,
    /// Queued bytes from which on publishers are paused.
    congested_bytes: usize,
    /// Signalled when the journal advances, if [`request_wakeup`](Self::request_wakeup) was called.
    event: Arc<ArmedEvent>,
    /// The last logged health of the disk.
    health: Health,
    counters: StorageCounters,
    log: VecDeque<String>,
}

impl DurableStore {
    /// Opens the store, and restores the topics.
    pub(crate) fn open(
        config: &StorageConfig,
        topics: Vec<TopicDefinition>,
        views: Vec<ViewDefinition>,
    ) -> Result<(Self, Vec<Topic>), SowStoreError> {
        let settings = lanecast_journal::JournalConfig {
            segment_bytes: config.segment_bytes,
            max_pending_bytes: config.waiting_bytes,
            // Segments that a checkpoint covers are not needed any more.
            retention: Retention { bytes: Some(config.segment_bytes), age: None },
            ..lanecast_journal::JournalConfig::default()
        };
        // The other half is for commands that were read before their clients were paused.
        let congested_bytes = settings.max_pending_bytes / 2;
        let directory = Directory::new(&config.directory);
        let schema = Schema { topics, views, forget: config.forget.clone() };
        let no_event = |error: io::Error| StorageError {
            operation: "make an eventfd for",
            path: config.directory.display().to_string(),
            kind: StorageErrorKind::Other,
            message: error.to_string(),
        };
        let event = Arc::new(ArmedEvent::new().map_err(no_event)?);
        let signal = Arc::clone(&event);
        // The journal's thread calls the closure, so it does no more than signal.
        let (archive, topics) =
            SowStore::open_with(directory, settings, schema, move |_| signal.notify())?;
        let store = Self {
            archive,
            pending_acks: VecDeque::new(),
            congested_bytes,
            checkpointer: Checkpointer::new(config.checkpoint_after),
            event,
            health: Health::Good,
            counters: StorageCounters::default(),
            log: VecDeque::new(),
        };
        Ok((store, topics))
    }

    /// Topics and views that were deleted from disk at the start, as configured.
    pub(crate) fn forgotten(&self) -> &[Box<str>] {
        self.archive.dropped()
    }

    /// The last sequence number of each client name on disk.
    pub(crate) fn client_sequences(&self) -> impl Iterator<Item = (&str, ClientSequence)> {
        self.archive.client_sequences()
    }

    /// The eventfd to poll.
    pub(crate) fn event(&self) -> &ArmedEvent {
        &self.event
    }

    /// Requests a signal for the journal's next progress. Conditions checked after this call cannot
    /// become true without a signal.
    pub(crate) fn request_wakeup(&self) {
        // Signals cost the journal a system call: only a server about to sleep asks for one.
        self.event.arm();
    }

    /// Clears the signal.
    pub(crate) fn clear_wakeup(&self) {
        self.event.clear();
    }

    /// Whether an acknowledgement or a checkpoint waits for the journal.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.pending_acks.is_empty() || self.checkpointer.awaited_position().is_some()
    }

    /// The journal position of the last change.
    pub(crate) fn last_position(&self) -> u64 {
        self.archive.last()
    }

    /// Whether all changes up to that position are durable.
    pub(crate) fn is_persisted(&self, position: u64) -> bool {
        // One atomic read: the journal's thread advances it after each sync.
        position <= self.archive.journal().last_sequence(Durability::Persisted)
    }

    /// Takes a log line, after adding one if the health of the disk changed.
    pub(crate) fn next_log_line(&mut self) -> Option<String> {
        let health = self.archive.journal().health();
        if health != self.health {
            self.health = health;
            self.log_health();
        }
        self.log.pop_front()
    }

    fn log_health(&mut self) {
        let line = match self.health {
            Health::Good => "there is space again: what waited is being written".to_owned(),
            Health::NoSpace => {
                self.counters.disk_full += 1;
                let path = self.archive.storage().path("");
                format!(
                    "the disk is full: free some space for {path}; until then what is to be \
                     durable is refused"
                )
            }
            Health::Failed => {
                self.counters.disk_failed += 1;
                format!(
                    "{}; nothing is durable any more: start the server again when the disk is \
                     repaired",
                    self.failure().unwrap_or_default()
                )
            }
        };
        self.log(&line);
    }

    fn log(&mut self, line: &str) {
        if self.log.len() < LOG_LINES_MAX {
            self.log.push_back(format!("durable topics: {line}"));
        }
    }

    /// Whether the disk failed for good.
    pub(crate) fn has_failed(&self) -> bool {
        self.archive.journal().health() == Health::Failed
    }

    /// Why the disk failed, if it did.
    pub(crate) fn failure(&self) -> Option<String> {
        self.archive.journal().failure().map(|error| error.to_string())
    }

    pub(crate) fn counters(&self) -> StorageCounters {
        self.counters
    }

    /// Whether an acknowledgement or a checkpoint can continue.
    pub(crate) fn has_progress(&self) -> bool {
        // After a failure nothing more is persisted: waiting ends with an error.
        let is_decided = |position| self.has_failed() || self.is_persisted(position);
        self.checkpointer.awaited_position().is_some_and(is_decided)
            || self.pending_acks.front().is_some_and(|(position, _)| is_decided(*position))
    }

    /// Whether so much is queued for the journal that publishers must pause. Changes on the
    /// journal's thread, so two calls in a row may differ.
    pub(crate) fn is_congested(&self) -> bool {
        // Callers decide once per turn, and keep the result: the value changes meanwhile.
        self.archive.journal().pending_bytes() >= self.congested_bytes
    }

    pub(crate) fn publish<'a>(
        &mut self,
        topic: &'a mut Topic,
        publication: &Publication<'a>,
        is_delta: bool,
        now_ns: u64,
    ) -> Result<Change<'a>, CommandError> {
        let logged = match is_delta {
            true => self.archive.publish_delta(topic, publication, now_ns),
            false => self.archive.publish(topic, publication, now_ns),
        };
        let not_stored = &mut self.counters.not_stored;
        Ok(logged.map_err(|error| command_error(error, not_stored))?.change)
    }

    pub(crate) fn delete<'a>(
        &mut self,
        topic: &'a mut Topic,
        key: Key,
        client: &'a str,
        now_ns: u64,
    ) -> Result<Option<Change<'a>>, CommandError> {
        let not_stored = &mut self.counters.not_stored;
        let logged = self.archive.delete(topic, key, client, now_ns);
        let logged = logged.map_err(|error| command_error(error, not_stored))?;
        Ok(logged.map(|logged| logged.change))
    }

    pub(crate) fn expire<'a>(
        &mut self,
        topic: &'a mut Topic,
        now_ns: u64,
    ) -> Result<Option<Change<'a>>, CommandError> {
        // Not counted as a failure, since it is retried.
        let logged = self.archive.expire(topic, now_ns);
        let logged = logged.map_err(|error| command_error(error, &mut 0))?;
        Ok(logged.map(|logged| logged.change))
    }

    /// Stores the sequence number of a command that changed several records or none.
    pub(crate) fn store_sequence(
        &mut self,
        name: &str,
        sequence: u64,
        now_ns: u64,
    ) -> Result<(), CommandError> {
        self.archive.record_client_sequence(name, sequence, now_ns)?;
        Ok(())
    }

    /// Deletes the sequence number of a client name.
    pub(crate) fn delete_sequence(&mut self, name: &str, now_ns: u64) -> Result<(), CommandError> {
        Ok(self.archive.remove_client(name, now_ns)?)
    }

    /// Queues an acknowledgement until all changes so far are persisted.
    pub(crate) fn defer_ack(&mut self, ack: PendingAck) {
        // Positions only grow, so the queue stays sorted, and its front is due first.
        self.pending_acks.push_back((self.archive.last(), ack));
    }

    /// Removes the acknowledgements of a client that disconnected.
    pub(crate) fn remove_client(&mut self, client: ClientId) {
        self.pending_acks.retain(|(_, ack)| ack.client != client);
    }

    /// Takes an acknowledgement whose changes are persisted, or an error if they never will be.
    pub(crate) fn next_ack(&mut self) -> Option<(PendingAck, Result<(), CommandError>)> {
        let journal = self.archive.journal();
        let (position, _) = self.pending_acks.front()?;
        let result = match *position <= journal.last_sequence(Durability::Persisted) {
            true => Ok(()),
            // `?` leaves the loop while the journal is healthy: the acknowledgement goes on
            // waiting.
            false => Err(CommandError::Disk(Box::new(journal.failure()?))),
        };
        self.pending_acks.pop_front().map(|(_, ack)| (ack, result))
    }

    /// When to call [`advance_checkpoint`](Self::advance_checkpoint) again.
    pub(crate) fn next_deadline(&self, now: Nanos) -> Option<Nanos> {
        self.checkpointer.has_thread().then_some(now + POLL_CHECKPOINT_NS)
    }

    /// Continues a checkpoint of all durable `topics`; whether it can continue at once.
    pub(crate) fn advance_checkpoint(&mut self, topics: &[&Topic]) -> bool {
        match self.checkpointer.advance(&mut self.archive, topics) {
            Ok(continues) => continues,
            Err(error) => {
                // A restart takes longer, and nothing is lost.
                self.counters.checkpoints_failed += 1;
                self.log(&format!(
                    "no checkpoint: {error}; the journal has all, and grows until one can be taken"
                ));
                false
            }
        }
    }

    /// Waits until all changes are durable, for at most `limit`.
    pub(crate) fn wait_durable(&self, limit: Duration) {
        let last = self.archive.last();
        if last > 0 {
            // Pending acknowledgements report a failure.
            let _result = self.archive.journal().wait(last, Durability::Persisted, limit);
        }
    }
}

/// Converts an error, and counts changes that the journal did not accept.
fn command_error(error: WriteError, not_stored: &mut u64) -> CommandError {
    match error {
        WriteError::Refused(refusal) => refusal.into(),
        WriteError::Append(error) => {
            *not_stored += 1;
            CommandError::NotStored(error)
        }
    }
}
