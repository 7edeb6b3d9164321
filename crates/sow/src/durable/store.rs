//! [`SowStore`]: changes durable topics, with a journal entry before each change.

use super::checkpoint::{Checkpoint, remove_others};
use super::clients::{ClientSequence, Clients};
use super::definition_text::texts_of_views;
use super::entry;
use super::error::{SowStoreError, WriteError};
use super::recovery::Recovery;
use super::schema::Schema;
use crate::change::{Cause, Change};
use crate::key::Key;
use crate::publication::Publication;
use crate::topic::{PreparedRecord, Topic};
use lanecast_journal::{
    AppendError, Durability, Entry, Journal, JournalConfig, RetentionPin, Storage, StorageError,
};
use lanecast_wire::state::{
    STATE_CLIENT, STATE_CLIENT_GONE, STATE_DEFINE, STATE_DELETE, STATE_EXPIRE, STATE_PUT,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Durable storage of topics. The topics must be changed through it only.
#[derive(Debug)]
pub struct SowStore<S: Storage> {
    storage: S,
    journal: Journal<S>,
    /// Pins the journal behind the last checkpoint.
    pin: RetentionPin,
    covered: u64,
    /// Sequence of the last journal record.
    last: u64,
    /// Last sequence of each client.
    clients: Clients,
    /// Definitions of views, as text.
    views: BTreeMap<Box<str>, String>,
    /// Topics and views dropped from disk at opening.
    dropped_names: Vec<Box<str>>,
    body: Vec<u8>,
}

/// Bytes of definitions per journal record, unless a single one is longer.
const DEFINITIONS: usize = 4 << 10;
/// Time that opening waits for the journal.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// A change that was appended to the journal.
#[derive(Clone, Copy, Debug)]
pub struct LoggedChange<'a> {
    /// The change.
    pub change: Change<'a>,
    /// Sequence in the journal: the change is durable when this is persisted.
    pub journal_sequence: u64,
}

impl<S: Storage + Clone> SowStore<S> {
    /// Opens the store in `storage`, or creates it; returns the restored topics.
    ///
    /// Records that have expired meanwhile are still there: see [`SowStore::expire`].
    ///
    /// # Errors
    /// See [`SowStoreError`]. If topics or views on disk do not match `schema`, and it does not
    /// allow to drop them, nothing has changed.
    pub fn open(
        storage: S,
        settings: JournalConfig,
        schema: impl Into<Schema>,
    ) -> Result<(Self, Vec<Topic>), SowStoreError> {
        Self::open_with(storage, settings, schema, |_| ())
    }

    /// As [`open`](Self::open), with a `listener` as in [`Journal::open_with`].
    ///
    /// # Errors
    /// See [`SowStoreError`].
    pub fn open_with(
        storage: S,
        settings: JournalConfig,
        schema: impl Into<Schema>,
        listener: impl Fn(u64) + Send + Sync + 'static,
    ) -> Result<(Self, Vec<Topic>), SowStoreError> {
        let schema = schema.into();
        let journal = Journal::open_with(storage.clone(), settings, listener)?;
        let pin = journal.pin(0);
        let mut recovery = Recovery::new(&schema.topics)?;
        let covered = recovery.load(&storage)?;
        recovery.replay(&journal, covered)?;
        let schema_change = recovery.reconcile(&schema)?;
        pin.move_to(covered + 1);
        let last = journal.recovered().last;
        let Recovery { topics, clients, .. } = recovery;
        let mut archive = Self {
            storage,
            journal,
            pin,
            covered,
            last,
            clients,
            views: texts_of_views(&schema.views),
            dropped_names: schema_change.dropped_names,
            body: Vec::new(),
        };
        archive.append_definitions(&schema_change.entries)?;
        remove_others(&archive.storage, covered)?;
        Ok((archive, topics))
    }

    /// Topics and views that were dropped from disk, as [`Schema::forget`] allowed.
    pub fn dropped(&self) -> &[Box<str>] {
        &self.dropped_names
    }

    /// Appends definitions before any change of a topic, several per record.
    fn append_definitions(&mut self, entries: &[Vec<u8>]) -> Result<(), SowStoreError> {
        let mut entries = entries.iter().peekable();
        while entries.peek().is_some() {
            self.body.clear();
            while let Some(next) = entries.peek()
                && (self.body.is_empty() || self.body.len() + next.len() <= DEFINITIONS)
            {
                self.body.extend_from_slice(next);
                entries.next();
            }
            let appended = match self.append(0, STATE_DEFINE, 0) {
                Err(AppendError::Full) => {
                    self.journal.wait(self.last, Durability::Persisted, OPEN_TIMEOUT)?;
                    self.append(0, STATE_DEFINE, 0)
                }
                appended => appended,
            };
            appended.map_err(SowStoreError::Append)?;
        }
        Ok(())
    }

    /// The journal, to poll or wait for durability.
    pub fn journal(&self) -> &Journal<S> {
        &self.journal
    }

    /// Last journal sequence covered by a checkpoint.
    pub fn covered(&self) -> u64 {
        self.covered
    }

    /// Sequence of the last journal record, persisted or not.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Clients and their last sequences.
    pub fn client_sequences(&self) -> impl Iterator<Item = (&str, ClientSequence)> {
        self.clients.iter().map(|(name, client)| (&**name, *client))
    }

    /// Removes the last sequence of a client.
    ///
    /// # Errors
    /// If the journal refuses. The sequence is kept then.
    pub fn remove_client(&mut self, name: &str, now_ns: u64) -> Result<(), AppendError> {
        if self.clients.contains_key(name) {
            self.body.clear();
            entry::client_gone(name, &mut self.body)?;
            self.append(0, STATE_CLIENT_GONE, now_ns)?;
            self.clients.remove(name);
        }
        Ok(())
    }

    /// As [`Topic::publish`].
    ///
    /// # Errors
    /// If the topic or the journal refuses. Nothing has changed then.
    pub fn publish<'a>(
        &mut self,
        topic: &'a mut Topic,
        publication: &Publication<'a>,
        now_ns: u64,
    ) -> Result<LoggedChange<'a>, WriteError> {
        let next = topic.prepare(publication, now_ns)?;
        self.put(topic, next, Cause::Published, publication, now_ns)
    }

    /// As [`Topic::publish_delta`]. The journal gets the merged message.
    ///
    /// # Errors
    /// If the topic or the journal refuses. Nothing has changed then.
    pub fn publish_delta<'a>(
        &mut self,
        topic: &'a mut Topic,
        publication: &Publication<'a>,
        now_ns: u64,
    ) -> Result<LoggedChange<'a>, WriteError> {
        let (next, cause) = topic.prepare_delta(publication, now_ns)?;
        self.put(topic, next, cause, publication, now_ns)
    }

    /// As [`Topic::delete`].
    ///
    /// # Errors
    /// If the journal refuses. Nothing has changed then.
    pub fn delete<'a>(
        &mut self,
        topic: &'a mut Topic,
        key: Key,
        client: &'a str,
        now_ns: u64,
    ) -> Result<Option<LoggedChange<'a>>, WriteError> {
        let row_id = topic.find(key);
        self.remove(topic, row_id, Cause::Deleted, client, now_ns)
    }

    /// As [`Topic::delete_as`].
    ///
    /// # Errors
    /// If the message has no key, or the journal refuses. Nothing has changed then.
    pub fn delete_as<'a>(
        &mut self,
        topic: &'a mut Topic,
        publication: &Publication<'a>,
        now_ns: u64,
    ) -> Result<Option<LoggedChange<'a>>, WriteError> {
        let row_id = topic.find_by_message(publication)?;
        self.remove(topic, row_id, Cause::Deleted, publication.client, now_ns)
    }

    /// As [`Topic::expire`].
    ///
    /// # Errors
    /// If the journal refuses. Nothing has changed then.
    pub fn expire<'a>(
        &mut self,
        topic: &'a mut Topic,
        now_ns: u64,
    ) -> Result<Option<LoggedChange<'a>>, WriteError> {
        let row_id = topic.due(now_ns);
        self.remove(topic, row_id, Cause::Expired, "", now_ns)
    }

    /// Stores the client's sequence of a command that published no record, such as a deletion;
    /// returns the journal's sequence.
    ///
    /// # Errors
    /// If the journal refuses.
    pub fn record_client_sequence(
        &mut self,
        name: &str,
        sequence: u64,
        now_ns: u64,
    ) -> Result<u64, AppendError> {
        if is_valid_name(name) {
            self.body.clear();
            entry::client(name, sequence, now_ns, &mut self.body)?;
            self.append(0, STATE_CLIENT, now_ns)?;
            self.set_client_sequence(name, sequence, now_ns);
        }
        Ok(self.last)
    }

    /// Begins a checkpoint of all topics, in the order in which the store was opened with them.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn begin_checkpoint(&self) -> Result<Checkpoint<S>, StorageError> {
        Checkpoint::new(&self.storage, self.last, &self.clients, &self.views)
    }

    /// Installs a sealed checkpoint in place of the previous one. Waits up to `timeout` until the
    /// journal is durable up to everything that the checkpoint may contain.
    ///
    /// # Errors
    /// If the disk refuses or times out. The previous checkpoint stays in force.
    pub fn install_checkpoint(
        &mut self,
        checkpoint: Checkpoint<S>,
        timeout: Duration,
    ) -> Result<(), SowStoreError> {
        if self.last > 0 {
            self.journal.wait(self.last, Durability::Persisted, timeout)?;
        }
        let covered = checkpoint.install(&self.storage)?;
        self.checkpoint_installed(covered);
        Ok(())
    }

    /// The storage in which a checkpoint is to be [installed](Checkpoint::install).
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// Must be called when a checkpoint that covers the journal up to `covered` was installed:
    /// releases the journal before it.
    pub fn checkpoint_installed(&mut self, covered: u64) {
        self.covered = covered;
        self.pin.move_to(covered + 1);
    }

    fn put<'a>(
        &mut self,
        topic: &'a mut Topic,
        next: PreparedRecord,
        cause: Cause,
        publication: &Publication<'a>,
        now_ns: u64,
    ) -> Result<LoggedChange<'a>, WriteError> {
        self.body.clear();
        entry::put(topic.number(), next.record(), &mut self.body)?;
        let client_sequence = publication.client_sequence.filter(|(name, _)| is_valid_name(name));
        if let Some((name, sequence)) = client_sequence {
            entry::client(name, sequence, now_ns, &mut self.body)?;
        }
        // Write-ahead: the journal first, so that a refusal leaves the topic unchanged.
        let journal_sequence = self.append(topic.number(), STATE_PUT, now_ns)?;
        if let Some((name, sequence)) = client_sequence {
            self.set_client_sequence(name, sequence, now_ns);
        }
        let change = topic.commit(next, cause, publication.client, now_ns);
        Ok(LoggedChange { change, journal_sequence })
    }

    fn set_client_sequence(&mut self, name: &str, sequence: u64, unix_ns: u64) {
        match self.clients.get_mut(name) {
            Some(last) => last.advance(sequence, unix_ns),
            None => {
                self.clients.insert(name.into(), ClientSequence { sequence, unix_ns });
            }
        }
    }

    fn remove<'a>(
        &mut self,
        topic: &'a mut Topic,
        row_id: Option<u32>,
        cause: Cause,
        client: &'a str,
        now_ns: u64,
    ) -> Result<Option<LoggedChange<'a>>, WriteError> {
        let Some((row_id, record)) = row_id.and_then(|row_id| Some((row_id, topic.at(row_id)?)))
        else {
            return Ok(None);
        };
        let kind = if cause == Cause::Expired { STATE_EXPIRE } else { STATE_DELETE };
        let (number, sequence) = (topic.number(), topic.sequence() + 1);
        self.body.clear();
        entry::gone(number, kind, record.identity(), sequence, &mut self.body);
        let journal_sequence = self.append(number, kind, now_ns)?;
        let change = topic.remove(row_id, cause, client, now_ns);
        Ok(change.map(|change| LoggedChange { change, journal_sequence }))
    }

    /// Appends `body` to the journal.
    fn append(&mut self, topic: u32, flags: u16, unix_ns: u64) -> Result<u64, AppendError> {
        let entry = Entry { topic, flags, unix_ns, body: &self.body, ..Entry::default() };
        self.last = *self.journal.append(&[entry])?.end();
        Ok(self.last)
    }
}

/// Whether a client's name fits into an entry.
fn is_valid_name(name: &str) -> bool {
    (1..=usize::from(u16::MAX)).contains(&name.len())
}
