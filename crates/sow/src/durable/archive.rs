//! The owner of a journal, through which topics are changed so that the changes are kept.

use super::checkpoint::{Checkpoint, is_checkpoint, name_of};
use super::entry;
use super::error::{ArchiveError, StoreError};
use super::restore::Restoring;
use crate::change::{Cause, Change};
use crate::definition::TopicDefinition;
use crate::key::Key;
use crate::publication::Publication;
use crate::topic::{Next, Topic};
use lanecast_journal::{AppendError, Entry, Hold, Journal, Level, Settings, Storage, StorageError};
use lanecast_wire::state::{STATE_CLIENT, STATE_DELETE, STATE_EXPIRE, STATE_PUT};
use std::collections::HashMap;
use std::time::Duration;

/// Keeps topics on disk. They have to be changed through it, and through nothing else.
#[derive(Debug)]
pub struct Archive<S: Storage> {
    storage: S,
    journal: Journal<S>,
    /// What the last checkpoint does not cover.
    hold: Hold,
    covered: u64,
    /// The last journal record.
    last: u64,
    /// The last number that each client gave a message.
    clients: HashMap<Box<str>, u64>,
    body: Vec<u8>,
}

/// A change that is on its way to the disk.
#[derive(Clone, Copy, Debug)]
pub struct Logged<'a> {
    /// What happened.
    pub change: Change<'a>,
    /// Its number in the journal: when that is persisted, the change is.
    pub journal_sequence: u64,
}

impl<S: Storage + Clone> Archive<S> {
    /// Opens the archive in `storage`, or makes one; gives the topics as they were.
    ///
    /// What has expired since then is still in them: see [`Archive::expire`].
    ///
    /// # Errors
    ///
    /// See [`ArchiveError`].
    pub fn open(
        storage: S,
        settings: Settings,
        definitions: Vec<TopicDefinition>,
    ) -> Result<(Self, Vec<Topic>), ArchiveError> {
        Self::open_with(storage, settings, definitions, |_| ())
    }

    /// The same; `listener` is called as [`Journal::open_with`] says.
    ///
    /// # Errors
    ///
    /// See [`ArchiveError`].
    pub fn open_with(
        storage: S,
        settings: Settings,
        definitions: Vec<TopicDefinition>,
        listener: impl Fn(u64) + Send + Sync + 'static,
    ) -> Result<(Self, Vec<Topic>), ArchiveError> {
        let journal = Journal::open_with(storage.clone(), settings, listener)?;
        let hold = journal.hold(0);
        let mut restoring = Restoring::new(definitions)?;
        let covered = restoring.load(&storage)?;
        restoring.replay(&journal, covered)?;
        hold.move_to(covered + 1);
        let last = journal.recovered().last;
        let topics = restoring.topics;
        let archive = Self {
            storage,
            journal,
            hold,
            covered,
            last,
            clients: restoring.clients,
            body: Vec::new(),
        };
        archive.remove_others()?;
        Ok((archive, topics))
    }

    /// The journal, to ask and wait for what is persisted.
    pub fn journal(&self) -> &Journal<S> {
        &self.journal
    }

    /// The last journal record that a checkpoint covers.
    pub fn covered(&self) -> u64 {
        self.covered
    }

    /// The last journal record: the last change, whether it is persisted or not.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The clients that have numbered their messages, each with its last number.
    pub fn client_sequences(&self) -> impl Iterator<Item = (&str, u64)> {
        self.clients.iter().map(|(name, sequence)| (&**name, *sequence))
    }

    /// As [`Topic::publish`].
    ///
    /// # Errors
    ///
    /// If the topic or the journal does not take it. Then nothing has changed.
    pub fn publish<'a>(
        &mut self,
        topic: &'a mut Topic,
        publication: &Publication<'a>,
        now_ns: u64,
    ) -> Result<Logged<'a>, StoreError> {
        let next = topic.prepare(publication, now_ns)?;
        self.put(topic, next, Cause::Published, publication, now_ns)
    }

    /// As [`Topic::publish_delta`]. The journal gets the whole message.
    ///
    /// # Errors
    ///
    /// If the topic or the journal does not take it. Then nothing has changed.
    pub fn publish_delta<'a>(
        &mut self,
        topic: &'a mut Topic,
        publication: &Publication<'a>,
        now_ns: u64,
    ) -> Result<Logged<'a>, StoreError> {
        let (next, cause) = topic.prepare_delta(publication, now_ns)?;
        self.put(topic, next, cause, publication, now_ns)
    }

    /// As [`Topic::delete`].
    ///
    /// # Errors
    ///
    /// If the journal does not take it. Then nothing has changed.
    pub fn delete<'a>(
        &mut self,
        topic: &'a mut Topic,
        key: Key,
        client: &'a str,
        now_ns: u64,
    ) -> Result<Option<Logged<'a>>, StoreError> {
        let place = topic.find(key);
        self.remove(topic, place, Cause::Deleted, client, now_ns)
    }

    /// As [`Topic::delete_as`].
    ///
    /// # Errors
    ///
    /// If the message has no key, or the journal does not take it. Then nothing has changed.
    pub fn delete_as<'a>(
        &mut self,
        topic: &'a mut Topic,
        publication: &Publication<'a>,
        now_ns: u64,
    ) -> Result<Option<Logged<'a>>, StoreError> {
        let place = topic.find_as(publication)?;
        self.remove(topic, place, Cause::Deleted, publication.client, now_ns)
    }

    /// As [`Topic::expire`].
    ///
    /// # Errors
    ///
    /// If the journal does not take it. Then nothing has changed.
    pub fn expire<'a>(
        &mut self,
        topic: &'a mut Topic,
        now_ns: u64,
    ) -> Result<Option<Logged<'a>>, StoreError> {
        let place = topic.due(now_ns);
        self.remove(topic, place, Cause::Expired, "", now_ns)
    }

    /// Remembers the number that a client gave something else than a message, which has been done;
    /// gives the number in the journal.
    ///
    /// # Errors
    ///
    /// If the journal does not take it.
    pub fn number(&mut self, name: &str, sequence: u64, now_ns: u64) -> Result<u64, AppendError> {
        if is_name(name) {
            self.body.clear();
            entry::client(name, sequence, &mut self.body);
            self.append(0, STATE_CLIENT, now_ns)?;
            self.remember(name, sequence);
        }
        Ok(self.last)
    }

    /// Begins a checkpoint of all topics, in the order that the archive was opened with.
    ///
    /// # Errors
    ///
    /// If the disk refuses.
    pub fn begin_checkpoint(&self) -> Result<Checkpoint<S>, StorageError> {
        Checkpoint::new(&self.storage, self.last, &self.clients)
    }

    /// Puts a sealed checkpoint in the place of the one before it, once the journal is durable up
    /// to what the checkpoint may know of: waits for that up to `timeout`.
    ///
    /// # Errors
    ///
    /// If the disk refuses, or takes too long. The checkpoint before it remains in force.
    pub fn adopt(
        &mut self,
        checkpoint: Checkpoint<S>,
        timeout: Duration,
    ) -> Result<(), ArchiveError> {
        if self.last > 0 {
            self.journal.wait(self.last, Level::Persisted, timeout)?;
        }
        let covered = checkpoint.place(&self.storage)?;
        self.covered = covered;
        self.hold.move_to(covered + 1);
        self.remove_others()?;
        Ok(())
    }

    fn put<'a>(
        &mut self,
        topic: &'a mut Topic,
        next: Next,
        cause: Cause,
        publication: &Publication<'a>,
        now_ns: u64,
    ) -> Result<Logged<'a>, StoreError> {
        self.body.clear();
        entry::put(topic.number(), next.record(), &mut self.body);
        let numbered = publication.numbered.filter(|(name, _)| is_name(name));
        if let Some((name, sequence)) = numbered {
            entry::client(name, sequence, &mut self.body);
        }
        let journal_sequence = self.append(topic.number(), STATE_PUT, now_ns)?;
        if let Some((name, sequence)) = numbered {
            self.remember(name, sequence);
        }
        let change = topic.commit(next, cause, publication.client, now_ns);
        Ok(Logged { change, journal_sequence })
    }

    fn remember(&mut self, name: &str, sequence: u64) {
        match self.clients.get_mut(name) {
            Some(last) => *last = sequence.max(*last),
            None => drop(self.clients.insert(name.into(), sequence)),
        }
    }

    fn remove<'a>(
        &mut self,
        topic: &'a mut Topic,
        place: Option<u32>,
        cause: Cause,
        client: &'a str,
        now_ns: u64,
    ) -> Result<Option<Logged<'a>>, StoreError> {
        let Some((place, record)) = place.and_then(|place| Some((place, topic.at(place)?))) else {
            return Ok(None);
        };
        let kind = if cause == Cause::Expired { STATE_EXPIRE } else { STATE_DELETE };
        let (number, sequence) = (topic.number(), topic.sequence() + 1);
        self.body.clear();
        entry::gone(number, kind, record.identity(), sequence, &mut self.body);
        let journal_sequence = self.append(number, kind, now_ns)?;
        let change = topic.remove(place, cause, client, now_ns);
        Ok(change.map(|change| Logged { change, journal_sequence }))
    }

    /// Appends what stands in `body`.
    fn append(&mut self, topic: u32, flags: u16, unix_ns: u64) -> Result<u64, AppendError> {
        let entry = Entry { topic, flags, unix_ns, body: &self.body, ..Entry::default() };
        self.last = *self.journal.append(&[entry])?.end();
        Ok(self.last)
    }

    /// Removes all checkpoints but the one that is in force, finished or not.
    fn remove_others(&self) -> Result<(), StorageError> {
        let kept = name_of(self.covered);
        for name in self.storage.list()? {
            if is_checkpoint(&name) && name != kept {
                self.storage.remove(&name)?;
            }
        }
        Ok(())
    }
}

/// Whether a client of this name can be remembered.
fn is_name(name: &str) -> bool {
    (1..=usize::from(u16::MAX)).contains(&name.len())
}
