//! Durable topics: what is on its way to the disk, and who is told when it is there.

use crate::Nanos;
use crate::client::ClientId;
use crate::refusal::Refusal;
use lanecast_journal::{Directory, Fault, Level, Outcome, Retention, StorageError};
use lanecast_os::event::AwaitedBell;
use lanecast_sow::durable::{
    Archive, ArchiveError, Checkpoint, ClientSequence, Schema, StoreError,
};
use lanecast_sow::{Change, Key, Publication, Topic, TopicDefinition, ViewDefinition};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Records that a checkpoint writes down before others get their turn.
const STEP: usize = 1_024;
/// How often it is looked whether a checkpoint has.
const LOOK_AT_CHECKPOINT: Nanos = 10_000_000;
/// For how long a checkpoint waits for the journal, which is ahead of it as a rule.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where durable topics are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// A directory of its own.
    pub directory: PathBuf,
    /// The length of the journal's files, in bytes: a multiple of 8 from 16 KiB to 1 GiB.
    pub segment_bytes: u64,
    /// After so many changes all records are written down, so that a restart is quick.
    pub checkpoint_after: u64,
    /// How much may wait in memory for the disk, in bytes: from half of that on publishers have to
    /// wait.
    pub waiting_bytes: usize,
    /// Topics and views that may be dropped from disk where the settings lack them, or have them
    /// with another key, type or definition. Those that are as they were stay.
    pub forget: Vec<Box<str>>,
}

impl Storage {
    /// The defaults, in that directory.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            segment_bytes: 64 << 20,
            checkpoint_after: 1_000_000,
            waiting_bytes: 16 << 20,
            forget: Vec::new(),
        }
    }
}

/// What somebody is told when a change is durable.
#[derive(Debug)]
pub(crate) struct Owed {
    /// The change, by its number in the journal.
    journal: u64,
    pub(crate) client: ClientId,
    pub(crate) command_id: Option<Box<str>>,
    pub(crate) sequence: Option<u64>,
}

/// The durable topics' disk.
#[derive(Debug)]
pub(crate) struct Disk {
    archive: Archive<Directory>,
    owed: VecDeque<Owed>,
    /// So many bytes may wait to be written before publishers have to.
    enough: usize,
    checkpoint_after: u64,
    snapshot: Snapshot,
    /// Checkpoints that could not be taken: the next is tried after as many changes again.
    failures: u64,
    /// Rings when the disk has come further, if that was asked for.
    bell: Arc<AwaitedBell>,
}

/// How far a checkpoint is.
#[derive(Debug)]
enum Snapshot {
    None,
    Writing(Box<Checkpoint<Directory>>),
    Sealing(JoinHandle<Outcome<Checkpoint<Directory>>>),
}

impl Disk {
    /// The disk, and the topics as they were.
    pub(crate) fn open(
        storage: &Storage,
        topics: Vec<TopicDefinition>,
        views: Vec<ViewDefinition>,
    ) -> Result<(Self, Vec<Topic>), ArchiveError> {
        let settings = lanecast_journal::Settings {
            segment_bytes: storage.segment_bytes,
            pending_bytes: storage.waiting_bytes,
            // What a checkpoint covers is not needed any more.
            retention: Retention { bytes: Some(storage.segment_bytes), age: None },
            ..lanecast_journal::Settings::default()
        };
        // The other half is for what those have under way.
        let enough = settings.pending_bytes / 2;
        let directory = Directory::new(&storage.directory);
        let schema = Schema { topics, views, forget: storage.forget.clone() };
        let no_bell = |error: io::Error| StorageError {
            act: "make an eventfd for",
            path: storage.directory.display().to_string(),
            fault: Fault::Other,
            why: error.to_string(),
        };
        let bell = Arc::new(AwaitedBell::new().map_err(no_bell)?);
        let ringing = Arc::clone(&bell);
        let (archive, topics) =
            Archive::open_with(directory, settings, schema, move |_| ringing.notify())?;
        let (checkpoint_after, snapshot) = (storage.checkpoint_after.max(1), Snapshot::None);
        let owed = VecDeque::new();
        let disk = Self { archive, owed, enough, checkpoint_after, snapshot, failures: 0, bell };
        Ok((disk, topics))
    }

    /// The topics and views that were dropped from disk, as the settings allowed.
    pub(crate) fn forgotten(&self) -> &[Box<str>] {
        self.archive.forgotten()
    }

    /// The clients that have numbered their messages, each with its last number.
    pub(crate) fn client_sequences(&self) -> impl Iterator<Item = (&str, ClientSequence)> {
        self.archive.client_sequences()
    }

    /// What rings when the disk has come further, if it was asked to.
    pub(crate) fn bell(&self) -> &AwaitedBell {
        &self.bell
    }

    /// Whether somebody waits for the disk to come further.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Whether there is somebody to be told something.
    pub(crate) fn has_news(&self) -> bool {
        let journal = self.archive.journal();
        self.owed.front().is_some_and(|first| {
            first.journal <= journal.reached(Level::Persisted) || journal.failure().is_some()
        })
    }

    /// Whether so much waits to be written that no more should be published for now.
    pub(crate) fn has_enough(&self) -> bool {
        self.archive.journal().waiting_bytes() >= self.enough
    }

    pub(crate) fn publish<'a>(
        &mut self,
        topic: &'a mut Topic,
        publication: &Publication<'a>,
        merges: bool,
        now_ns: u64,
    ) -> Result<Change<'a>, Refusal> {
        let logged = match merges {
            true => self.archive.publish_delta(topic, publication, now_ns),
            false => self.archive.publish(topic, publication, now_ns),
        };
        Ok(logged.map_err(refusal)?.change)
    }

    pub(crate) fn delete<'a>(
        &mut self,
        topic: &'a mut Topic,
        key: Key,
        client: &'a str,
        now_ns: u64,
    ) -> Result<Option<Change<'a>>, Refusal> {
        let logged = self.archive.delete(topic, key, client, now_ns).map_err(refusal)?;
        Ok(logged.map(|logged| logged.change))
    }

    pub(crate) fn expire<'a>(
        &mut self,
        topic: &'a mut Topic,
        now_ns: u64,
    ) -> Result<Option<Change<'a>>, Refusal> {
        let logged = self.archive.expire(topic, now_ns).map_err(refusal)?;
        Ok(logged.map(|logged| logged.change))
    }

    /// Remembers the number of something that a client did, and that is done.
    pub(crate) fn number(&mut self, name: &str, sequence: u64, now_ns: u64) -> Result<(), Refusal> {
        self.archive.number(name, sequence, now_ns)?;
        Ok(())
    }

    /// Somebody is to be told when all changes so far are durable.
    pub(crate) fn owe(
        &mut self,
        client: ClientId,
        command_id: Option<Box<str>>,
        sequence: Option<u64>,
    ) {
        let journal = self.archive.last();
        self.owed.push_back(Owed { journal, client, command_id, sequence });
    }

    /// A client has gone.
    pub(crate) fn forget(&mut self, client: ClientId) {
        self.owed.retain(|owed| owed.client != client);
    }

    /// Somebody who is to be told by now, and why what it did is not durable, if it is not.
    pub(crate) fn next_told(&mut self) -> Option<(Owed, Result<(), Refusal>)> {
        let journal = self.archive.journal();
        let first = self.owed.front()?;
        let told = match first.journal <= journal.reached(Level::Persisted) {
            true => Ok(()),
            false => Err(Refusal::Disk(Box::new(journal.failure()?))),
        };
        self.owed.pop_front().map(|owed| (owed, told))
    }

    /// When to look again.
    pub(crate) fn next_deadline(&self, now: Nanos) -> Option<Nanos> {
        match self.snapshot {
            Snapshot::Sealing(_) => Some(now + LOOK_AT_CHECKPOINT),
            _ => None,
        }
    }

    /// Goes on with a checkpoint of `topics`, which are all that are durable, or begins one if it
    /// is time; whether there is more to do at once.
    pub(crate) fn keep_checkpoint(&mut self, topics: &[&Topic]) -> bool {
        let (snapshot, is_more) = match std::mem::replace(&mut self.snapshot, Snapshot::None) {
            Snapshot::None => self.begin(),
            Snapshot::Writing(mut checkpoint) => match checkpoint.advance(topics, STEP) {
                Ok(true) => (Snapshot::Writing(checkpoint), true),
                Ok(false) => self.seal(checkpoint),
                Err(_) => self.give_up(),
            },
            Snapshot::Sealing(thread) if !thread.is_finished() => {
                (Snapshot::Sealing(thread), false)
            }
            Snapshot::Sealing(thread) => {
                let sealed = thread.join().ok().and_then(Result::ok);
                let adopted = sealed.map(|sealed| self.archive.adopt(sealed, PATIENCE));
                match adopted {
                    Some(Ok(())) => (Snapshot::None, false),
                    _ => self.give_up(),
                }
            }
        };
        self.snapshot = snapshot;
        is_more
    }

    fn begin(&mut self) -> (Snapshot, bool) {
        let changes = self.archive.last() - self.archive.covered();
        if changes / self.checkpoint_after <= self.failures {
            return (Snapshot::None, false);
        }
        match self.archive.begin_checkpoint() {
            Ok(checkpoint) => (Snapshot::Writing(Box::new(checkpoint)), true),
            Err(_) => self.give_up(),
        }
    }

    /// Has a checkpoint made durable by a thread of its own: that takes its time.
    fn seal(&mut self, mut checkpoint: Box<Checkpoint<Directory>>) -> (Snapshot, bool) {
        let thread = std::thread::Builder::new().name("lanecast-seal".to_owned());
        let sealing = thread.spawn(move || checkpoint.seal().map(|()| *checkpoint));
        match sealing {
            Ok(thread) => (Snapshot::Sealing(thread), false),
            Err(_) => self.give_up(),
        }
    }

    /// The journal has everything all the same: a restart takes longer, and that is all.
    fn give_up(&mut self) -> (Snapshot, bool) {
        self.failures = (self.archive.last() - self.archive.covered()) / self.checkpoint_after;
        (Snapshot::None, false)
    }

    /// Waits until all changes are durable, up to `limit`.
    pub(crate) fn finish(&self, limit: Duration) {
        let last = self.archive.last();
        if last > 0 {
            // Who waits for it is told what came of it.
            let _told = self.archive.journal().wait(last, Level::Persisted, limit);
        }
    }
}

fn refusal(error: StoreError) -> Refusal {
    match error {
        StoreError::Refused(refusal) => refusal.into(),
        StoreError::Append(error) => Refusal::Unstored(error),
    }
}
