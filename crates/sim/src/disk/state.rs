//! State of the simulated disk: files, names, and the faults to come.

use super::inode::Inode;
use crate::rng::SimRng;
use lanecast_journal::{StorageError, StorageErrorKind, StorageResult};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A change of file names that is not durable yet.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Make(String, usize),
    Remove(String),
    Rename(String, String, usize),
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) rng: SimRng,
    pub(super) inodes: Vec<Inode>,
    pub(super) names: BTreeMap<String, usize>,
    pub(super) durable_names: BTreeMap<String, usize>,
    pub(super) changes: Vec<Change>,
    /// Number of starts of the machine: files opened before are closed.
    pub(super) life: u32,
    pub(super) calls: u64,
    pub(super) read_bytes: u64,
    pub(super) stops_at: Option<u64>,
    pub(super) is_stopped: bool,
    pub(super) fails_at: Option<u64>,
    pub(super) capacity: u64,
    pub(super) writes_short: bool,
    pub(super) holds_preallocations: bool,
}

/// State shared by a disk and its open files.
#[derive(Clone, Debug)]
pub(super) struct SharedState(Arc<Mutex<State>>);

impl SharedState {
    pub(super) fn new(state: State) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Change {
    pub(super) fn apply(self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Make(name, inode) => {
                names.insert(name, inode);
            }
            Self::Remove(name) => {
                names.remove(&name);
            }
            Self::Rename(from, to, inode) => {
                // The name goes to this file, even if the old name now belongs to another.
                if names.get(&from) == Some(&inode) {
                    names.remove(&from);
                }
                names.insert(to, inode);
            }
        }
    }
}

impl State {
    /// Precondition of every call: the machine runs.
    pub(super) fn look(&self, operation: &'static str, path: &str) -> StorageResult<()> {
        if self.is_stopped {
            Err(error(operation, path, StorageErrorKind::Other, "the machine stands still"))
        } else {
            Ok(())
        }
    }

    /// Precondition of every changing call. True: the machine stops in the middle of it.
    pub(super) fn begin(&mut self, operation: &'static str, path: &str) -> StorageResult<bool> {
        self.look(operation, path)?;
        self.calls += 1;
        self.is_stopped = self.stops_at.is_some_and(|at| self.calls >= at);
        Ok(self.is_stopped)
    }

    /// Postcondition of every changing call.
    pub(super) fn end(&self, operation: &'static str, path: &str) -> StorageResult<()> {
        self.look(operation, path)
    }

    pub(super) fn change(&mut self, change: Change) {
        change.clone().apply(&mut self.names);
        self.changes.push(change);
    }

    pub(super) fn used(&self) -> u64 {
        self.names.values().map(|inode| self.inodes[*inode].now().len() as u64).sum()
    }

    pub(super) fn find(&self, operation: &'static str, name: &str) -> StorageResult<usize> {
        let found = self.names.get(name).copied();
        found.ok_or_else(|| {
            error(operation, name, StorageErrorKind::NotFound, "there is no such file")
        })
    }
}

pub(super) fn error(
    operation: &'static str,
    path: &str,
    kind: StorageErrorKind,
    message: &str,
) -> StorageError {
    StorageError { operation, path: format!("disk/{path}"), kind, message: message.to_owned() }
}
