//! Checkpoints of durable topics, so that a restart replays only the changes since the last one.
//!
//! The server's thread writes records some at a time; a thread of its own makes the file durable,
//! and another one replaces the previous checkpoint with it, since both wait for the disk.

use lanecast_journal::{Directory, Durability, StorageResult};
use lanecast_sow::Topic;
use lanecast_sow::durable::{Checkpoint, SowStore};
use std::fmt::Display;
use std::thread::JoinHandle;

/// Records written before other clients get their turn.
const STEP: usize = 1_024;

/// The stage of a checkpoint.
#[derive(Debug)]
enum Stage {
    Idle,
    Writing(Box<Checkpoint<Directory>>),
    /// Being made durable. The file may contain changes up to position `needed` of the journal.
    Syncing {
        thread: JoinHandle<StorageResult<Checkpoint<Directory>>>,
        needed: u64,
    },
    /// Durable, and waiting until the journal is durable up to `needed`, which it usually is.
    Synced {
        checkpoint: Box<Checkpoint<Directory>>,
        needed: u64,
    },
    /// Replacing the previous checkpoint.
    Installing(JoinHandle<StorageResult<u64>>),
}

/// Takes checkpoints. The durable store owns it.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    stage: Stage,
    /// Changes between two checkpoints.
    interval: u64,
    /// Intervals that passed with a failed checkpoint: the next try comes an interval later.
    failed_intervals: u64,
}

impl Checkpointer {
    pub(crate) fn new(interval: u64) -> Self {
        Self { stage: Stage::Idle, interval: interval.max(1), failed_intervals: 0 }
    }

    /// The journal position that a finished file waits for.
    pub(crate) fn awaited_position(&self) -> Option<u64> {
        match self.stage {
            Stage::Synced { needed, .. } => Some(needed),
            _ => None,
        }
    }

    /// Whether a thread works on a checkpoint, so that its end must be polled.
    pub(crate) fn has_thread(&self) -> bool {
        matches!(self.stage, Stage::Syncing { .. } | Stage::Installing(_))
    }

    /// Continues a checkpoint of all durable `topics`, or begins one if it is due; whether it can
    /// continue at once. Never blocks.
    ///
    /// # Errors
    /// Why the checkpoint failed. The journal then still has all changes.
    pub(crate) fn advance(
        &mut self,
        archive: &mut SowStore<Directory>,
        topics: &[&Topic],
    ) -> Result<bool, String> {
        let next = match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Idle => self.begin(archive),
            Stage::Writing(mut checkpoint) => match checkpoint.advance(topics, STEP) {
                // A slice per turn: writing all records at once would stop every client.
                Ok(true) => Ok((Stage::Writing(checkpoint), true)),
                Ok(false) => sync(archive, checkpoint),
                Err(error) => Err(error.to_string()),
            },
            Stage::Syncing { thread, needed } if !thread.is_finished() => {
                Ok((Stage::Syncing { thread, needed }, false))
            }
            Stage::Syncing { thread, needed } => {
                joined(thread).and_then(|done| install(archive, Box::new(done), needed))
            }
            Stage::Synced { checkpoint, needed } => install(archive, checkpoint, needed),
            Stage::Installing(thread) if !thread.is_finished() => {
                Ok((Stage::Installing(thread), false))
            }
            Stage::Installing(thread) => joined(thread).map(|covered| {
                // Only now may the journal drop segments: the file that replaces them is in place.
                archive.checkpoint_installed(covered);
                (Stage::Idle, false)
            }),
        };
        match next {
            Ok((stage, continues)) => {
                self.stage = stage;
                Ok(continues)
            }
            Err(error) => {
                // Without this a full disk would be tried in every turn.
                self.failed_intervals = self.intervals(archive);
                Err(error)
            }
        }
    }

    /// Whole intervals since the last checkpoint.
    fn intervals(&self, archive: &SowStore<Directory>) -> u64 {
        (archive.last() - archive.covered()) / self.interval
    }

    fn begin(&mut self, archive: &mut SowStore<Directory>) -> Result<(Stage, bool), String> {
        if self.intervals(archive) <= self.failed_intervals {
            return Ok((Stage::Idle, false));
        }
        // Publishing continues meanwhile; the journal replays changes over the file's records.
        let checkpoint = archive.begin_checkpoint().map_err(text)?;
        Ok((Stage::Writing(Box::new(checkpoint)), true))
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        // The directory's next owner must not find a thread of this one at work there.
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Syncing { thread, .. } => drop(thread.join()),
            Stage::Installing(thread) => drop(thread.join()),
            _ => {}
        }
    }
}

/// Makes a complete file durable, on a thread.
fn sync(
    archive: &SowStore<Directory>,
    mut checkpoint: Box<Checkpoint<Directory>>,
) -> Result<(Stage, bool), String> {
    // Records changed while they were written, so the file contains changes up to now.
    let needed = archive.last();
    let thread = std::thread::Builder::new().name("lanecast-seal".to_owned());
    let thread = thread.spawn(move || checkpoint.seal().map(|()| *checkpoint)).map_err(text)?;
    Ok((Stage::Syncing { thread, needed }, false))
}

/// Replaces the previous checkpoint, on a thread, once the journal is durable up to `needed`:
/// otherwise a crash could leave a checkpoint with changes that the journal lacks.
fn install(
    archive: &SowStore<Directory>,
    checkpoint: Box<Checkpoint<Directory>>,
    needed: u64,
) -> Result<(Stage, bool), String> {
    if needed > archive.journal().last_sequence(Durability::Persisted) {
        return match archive.journal().failure() {
            Some(error) => Err(error.to_string()),
            None => Ok((Stage::Synced { checkpoint, needed }, false)),
        };
    }
    // Renaming and syncing a directory may block for long.
    let storage = archive.storage().clone();
    let thread = std::thread::Builder::new().name("lanecast-place".to_owned());
    let thread = thread.spawn(move || checkpoint.install(&storage)).map_err(text)?;
    Ok((Stage::Installing(thread), false))
}

/// The result of a finished thread.
fn joined<T>(thread: JoinHandle<StorageResult<T>>) -> Result<T, String> {
    let result = thread.join().map_err(|_| "its thread has panicked".to_owned())?;
    result.map_err(text)
}

fn text(error: impl Display) -> String {
    error.to_string()
}
