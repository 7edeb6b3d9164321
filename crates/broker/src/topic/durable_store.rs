//! Durable topics: what is on its way to the disk, and who is told when it is there.

use crate::Nanos;
use crate::client::ClientId;
use crate::command::error::CommandError;
use crate::config::storage::StorageConfig;
use lanecast_journal::{
    Directory, Durability, Health, Retention, Storage as _, StorageError, StorageErrorKind,
    StorageResult,
};
use lanecast_os::event::ArmedEvent;
use lanecast_sow::durable::{
    Checkpoint, ClientSequence, Schema, SowStore, SowStoreError, WriteError,
};
use lanecast_sow::{Change, Key, Publication, Topic, TopicDefinition, ViewDefinition};
use std::collections::VecDeque;
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Records that a checkpoint writes down before others get their turn.
const STEP: usize = 1_024;
/// How often it is looked whether a checkpoint has.
const LOOK_AT_CHECKPOINT: Nanos = 10_000_000;
/// So many words about the disk are remembered until they are asked for.
const WORDS_MAX: usize = 16;

/// What the disk has not done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StorageCounters {
    pub(crate) not_stored: u64,
    pub(crate) disk_full: u64,
    pub(crate) disk_failed: u64,
    pub(crate) checkpoints_failed: u64,
}

/// What somebody is told when a change is durable.
#[derive(Debug)]
pub(crate) struct PendingAck {
    /// The change, by its number in the journal.
    journal: u64,
    pub(crate) client: ClientId,
    pub(crate) command_id: Option<Box<str>>,
    pub(crate) sequence: Option<u64>,
    /// It had been done before.
    pub(crate) is_duplicate: bool,
}

/// The durable topics' disk.
#[derive(Debug)]
pub(crate) struct DurableStore {
    archive: SowStore<Directory>,
    owed: VecDeque<PendingAck>,
    /// So many bytes may wait to be written before publishers have to.
    enough: usize,
    checkpoint_after: u64,
    snapshot: CheckpointState,
    /// Checkpoints that could not be taken: the next is tried after as many changes again.
    failures: u64,
    /// Rings when the disk has come further, if that was asked for.
    bell: Arc<ArmedEvent>,
    /// What was last said of it.
    health: Health,
    counters: StorageCounters,
    words: VecDeque<String>,
}

/// How far a checkpoint is.
#[derive(Debug)]
enum CheckpointState {
    None,
    Writing(Box<Checkpoint<Directory>>),
    /// Being made durable; it may know of changes up to `needed`.
    Sealing {
        thread: JoinHandle<StorageResult<Checkpoint<Directory>>>,
        needed: u64,
    },
    /// It waits for the journal, which is ahead of it as a rule.
    Sealed {
        checkpoint: Box<Checkpoint<Directory>>,
        needed: u64,
    },
    /// Being put in force.
    Placing(JoinHandle<StorageResult<u64>>),
}

impl DurableStore {
    /// The disk, and the topics as they were.
    pub(crate) fn open(
        storage: &StorageConfig,
        topics: Vec<TopicDefinition>,
        views: Vec<ViewDefinition>,
    ) -> Result<(Self, Vec<Topic>), SowStoreError> {
        let settings = lanecast_journal::JournalConfig {
            segment_bytes: storage.segment_bytes,
            max_pending_bytes: storage.waiting_bytes,
            // What a checkpoint covers is not needed any more.
            retention: Retention { bytes: Some(storage.segment_bytes), age: None },
            ..lanecast_journal::JournalConfig::default()
        };
        // The other half is for what those have under way.
        let enough = settings.max_pending_bytes / 2;
        let directory = Directory::new(&storage.directory);
        let schema = Schema { topics, views, forget: storage.forget.clone() };
        let no_bell = |error: io::Error| StorageError {
            operation: "make an eventfd for",
            path: storage.directory.display().to_string(),
            kind: StorageErrorKind::Other,
            message: error.to_string(),
        };
        let bell = Arc::new(ArmedEvent::new().map_err(no_bell)?);
        let ringing = Arc::clone(&bell);
        let (archive, topics) =
            SowStore::open_with(directory, settings, schema, move |_| ringing.notify())?;
        let (checkpoint_after, snapshot) = (storage.checkpoint_after.max(1), CheckpointState::None);
        let owed = VecDeque::new();
        let disk = Self {
            archive,
            owed,
            enough,
            checkpoint_after,
            snapshot,
            failures: 0,
            bell,
            health: Health::Good,
            counters: StorageCounters::default(),
            words: VecDeque::new(),
        };
        Ok((disk, topics))
    }

    /// The topics and views that were dropped from disk, as the settings allowed.
    pub(crate) fn forgotten(&self) -> &[Box<str>] {
        self.archive.dropped()
    }

    /// The clients that have numbered their messages, each with its last number.
    pub(crate) fn client_sequences(&self) -> impl Iterator<Item = (&str, ClientSequence)> {
        self.archive.client_sequences()
    }

    /// What rings when the disk has come further, if it was asked to.
    pub(crate) fn bell(&self) -> &ArmedEvent {
        &self.bell
    }

    /// Whether an acknowledgement or a checkpoint waits for the disk to come further.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.owed.is_empty() || matches!(self.snapshot, CheckpointState::Sealed { .. })
    }

    /// The last change, by its number in the journal.
    pub(crate) fn last(&self) -> u64 {
        self.archive.last()
    }

    /// Whether all changes up to that one are durable.
    pub(crate) fn has_reached(&self, journal: u64) -> bool {
        journal <= self.archive.journal().last_sequence(Durability::Persisted)
    }

    /// Looks how the disk is, says what has changed, and gives what was said since then.
    pub(crate) fn next_log_line(&mut self) -> Option<String> {
        let health = self.archive.journal().health();
        if health != self.health {
            self.health = health;
            self.note_health();
        }
        self.words.pop_front()
    }

    fn note_health(&mut self) {
        let words = match self.health {
            Health::Good => "there is space again: what waited is being written".to_owned(),
            Health::NoSpace => {
                self.counters.disk_full += 1;
                let place = self.archive.storage().path("");
                format!(
                    "the disk is full: free some space for {place}; until then what is to be \
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
        self.say(&words);
    }

    fn say(&mut self, words: &str) {
        if self.words.len() < WORDS_MAX {
            self.words.push_back(format!("durable topics: {words}"));
        }
    }

    /// Whether nothing is durable any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.archive.journal().health() == Health::Failed
    }

    /// Why nothing is durable any more, if so.
    pub(crate) fn failure(&self) -> Option<String> {
        self.archive.journal().failure().map(|error| error.to_string())
    }

    pub(crate) fn counters(&self) -> StorageCounters {
        self.counters
    }

    /// Whether there is somebody to be told something.
    pub(crate) fn has_news(&self) -> bool {
        let is_told = |journal| self.has_failed() || self.has_reached(journal);
        let is_placed = match self.snapshot {
            CheckpointState::Sealed { needed, .. } => is_told(needed),
            _ => false,
        };
        is_placed || self.owed.front().is_some_and(|first| is_told(first.journal))
    }

    /// Whether so much waits to be written that no more should be published for now.
    pub(crate) fn has_enough(&self) -> bool {
        self.archive.journal().pending_bytes() >= self.enough
    }

    pub(crate) fn publish<'a>(
        &mut self,
        topic: &'a mut Topic,
        publication: &Publication<'a>,
        merges: bool,
        now_ns: u64,
    ) -> Result<Change<'a>, CommandError> {
        let logged = match merges {
            true => self.archive.publish_delta(topic, publication, now_ns),
            false => self.archive.publish(topic, publication, now_ns),
        };
        let not_stored = &mut self.counters.not_stored;
        Ok(logged.map_err(|error| refusal(error, not_stored))?.change)
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
        let logged = logged.map_err(|error| refusal(error, not_stored))?;
        Ok(logged.map(|logged| logged.change))
    }

    pub(crate) fn expire<'a>(
        &mut self,
        topic: &'a mut Topic,
        now_ns: u64,
    ) -> Result<Option<Change<'a>>, CommandError> {
        // Tried again, so that it is no loss.
        let logged = self.archive.expire(topic, now_ns).map_err(|error| refusal(error, &mut 0))?;
        Ok(logged.map(|logged| logged.change))
    }

    /// Remembers the number of something that a client did, and that is done.
    pub(crate) fn number(
        &mut self,
        name: &str,
        sequence: u64,
        now_ns: u64,
    ) -> Result<(), CommandError> {
        self.archive.record_client_sequence(name, sequence, now_ns)?;
        Ok(())
    }

    /// Forgets the last number of a client's name.
    pub(crate) fn forget_name(&mut self, name: &str, now_ns: u64) -> Result<(), CommandError> {
        Ok(self.archive.remove_client(name, now_ns)?)
    }

    /// Somebody is to be told when all changes so far are durable.
    pub(crate) fn owe(
        &mut self,
        client: ClientId,
        command_id: Option<Box<str>>,
        sequence: Option<u64>,
        is_duplicate: bool,
    ) {
        let journal = self.archive.last();
        self.owed.push_back(PendingAck { journal, client, command_id, sequence, is_duplicate });
    }

    /// A client has gone.
    pub(crate) fn forget(&mut self, client: ClientId) {
        self.owed.retain(|owed| owed.client != client);
    }

    /// Somebody who is to be told by now, and why what it did is not durable, if it is not.
    pub(crate) fn next_told(&mut self) -> Option<(PendingAck, Result<(), CommandError>)> {
        let journal = self.archive.journal();
        let first = self.owed.front()?;
        let told = match first.journal <= journal.last_sequence(Durability::Persisted) {
            true => Ok(()),
            false => Err(CommandError::DurableStore(Box::new(journal.failure()?))),
        };
        self.owed.pop_front().map(|owed| (owed, told))
    }

    /// When to look again.
    pub(crate) fn next_deadline(&self, now: Nanos) -> Option<Nanos> {
        match self.snapshot {
            CheckpointState::Sealing { .. } | CheckpointState::Placing(_) => {
                Some(now + LOOK_AT_CHECKPOINT)
            }
            _ => None,
        }
    }

    /// Goes on with a checkpoint of `topics`, which are all that are durable, or begins one if it
    /// is time; whether there is more to do at once. Waits for nothing.
    pub(crate) fn keep_checkpoint(&mut self, topics: &[&Topic]) -> bool {
        let (snapshot, is_more) = match std::mem::replace(&mut self.snapshot, CheckpointState::None)
        {
            CheckpointState::None => self.begin(),
            CheckpointState::Writing(mut checkpoint) => match checkpoint.advance(topics, STEP) {
                Ok(true) => (CheckpointState::Writing(checkpoint), true),
                Ok(false) => self.seal(checkpoint),
                Err(error) => self.give_up(&error),
            },
            CheckpointState::Sealing { thread, needed } if !thread.is_finished() => {
                (CheckpointState::Sealing { thread, needed }, false)
            }
            CheckpointState::Sealing { thread, needed } => match joined(thread) {
                Ok(checkpoint) => self.place(Box::new(checkpoint), needed),
                Err(error) => self.give_up(&error),
            },
            CheckpointState::Sealed { checkpoint, needed } => self.place(checkpoint, needed),
            CheckpointState::Placing(thread) if !thread.is_finished() => {
                (CheckpointState::Placing(thread), false)
            }
            CheckpointState::Placing(thread) => match joined(thread) {
                Ok(covered) => {
                    self.archive.checkpoint_installed(covered);
                    (CheckpointState::None, false)
                }
                Err(error) => self.give_up(&error),
            },
        };
        self.snapshot = snapshot;
        is_more
    }

    fn begin(&mut self) -> (CheckpointState, bool) {
        let changes = self.archive.last() - self.archive.covered();
        if changes / self.checkpoint_after <= self.failures {
            return (CheckpointState::None, false);
        }
        match self.archive.begin_checkpoint() {
            Ok(checkpoint) => (CheckpointState::Writing(Box::new(checkpoint)), true),
            Err(error) => self.give_up(&error),
        }
    }

    /// Has a checkpoint made durable by a thread of its own: that takes its time.
    fn seal(&mut self, mut checkpoint: Box<Checkpoint<Directory>>) -> (CheckpointState, bool) {
        // It was written while changes went on, and has some of them.
        let needed = self.archive.last();
        let thread = std::thread::Builder::new().name("lanecast-seal".to_owned());
        let sealing = thread.spawn(move || checkpoint.seal().map(|()| *checkpoint));
        match sealing {
            Ok(thread) => (CheckpointState::Sealing { thread, needed }, false),
            Err(error) => self.give_up(&error),
        }
    }

    /// Has a checkpoint put in force once the journal has all that it may know of.
    fn place(
        &mut self,
        checkpoint: Box<Checkpoint<Directory>>,
        needed: u64,
    ) -> (CheckpointState, bool) {
        if !self.has_reached(needed) {
            return match self.failure() {
                Some(error) => self.give_up(&error),
                None => (CheckpointState::Sealed { checkpoint, needed }, false),
            };
        }
        let storage = self.archive.storage().clone();
        let thread = std::thread::Builder::new().name("lanecast-place".to_owned());
        match thread.spawn(move || checkpoint.install(&storage)) {
            Ok(thread) => (CheckpointState::Placing(thread), false),
            Err(error) => self.give_up(&error),
        }
    }

    /// The journal has everything all the same: a restart takes longer, and that is all.
    fn give_up(&mut self, why: &dyn Display) -> (CheckpointState, bool) {
        self.failures = (self.archive.last() - self.archive.covered()) / self.checkpoint_after;
        self.counters.checkpoints_failed += 1;
        self.say(&format!(
            "no checkpoint: {why}; the journal has all, and grows until one can be taken"
        ));
        (CheckpointState::None, false)
    }

    /// Waits until all changes are durable, up to `limit`.
    pub(crate) fn finish(&self, limit: Duration) {
        let last = self.archive.last();
        if last > 0 {
            // Acknowledgements that wait for it say what came of it.
            let _told = self.archive.journal().wait(last, Durability::Persisted, limit);
        }
    }
}

impl Drop for DurableStore {
    fn drop(&mut self) {
        // The next owner of the directory may not find a thread of this one at work there.
        match std::mem::replace(&mut self.snapshot, CheckpointState::None) {
            CheckpointState::Sealing { thread, .. } => drop(thread.join()),
            CheckpointState::Placing(thread) => drop(thread.join()),
            _ => {}
        }
    }
}

/// Why a change was not made; counts those that the disk did not take.
fn refusal(error: WriteError, not_stored: &mut u64) -> CommandError {
    match error {
        WriteError::Refused(refusal) => refusal.into(),
        WriteError::Append(error) => {
            *not_stored += 1;
            CommandError::Unstored(error)
        }
    }
}

/// What a thread has done that has finished.
fn joined<T>(thread: JoinHandle<StorageResult<T>>) -> Result<T, String> {
    let done = thread.join().map_err(|_| "its thread has panicked".to_owned())?;
    done.map_err(|error| error.to_string())
}
