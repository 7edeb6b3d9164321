//! Settings of durable topics' storage.

use serde::Deserialize;
use std::path::PathBuf;

/// Storage of durable topics: a journal and checkpoints in one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageConfig {
    /// The directory. No other server may use it.
    pub directory: PathBuf,
    /// Length of a journal segment, in bytes: a multiple of 8 from 16 KiB to 1 GiB.
    pub segment_bytes: u64,
    /// Number of changes between two checkpoints. A restart replays the changes since the last one.
    pub checkpoint_after: u64,
    /// The most bytes queued for the journal. Publishers are paused from half of it on.
    pub waiting_bytes: usize,
    /// Topics and views that the server may delete from disk if the settings lack them, or define
    /// them with another key, type or definition. Unchanged ones stay.
    pub forget: Vec<Box<str>>,
    /// The reaction to a failed disk.
    pub on_failure: OnFailure,
}

/// The reaction to a disk that failed for good: nothing can be made durable any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// Logs the failure, refuses changes of durable topics, and serves everything else.
    #[default]
    Continue,
    /// Logs the failure and asks to be ended: see [`Server::failure`](crate::Server::failure).
    Stop,
}

impl StorageConfig {
    /// The defaults, in that directory.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            segment_bytes: 64 << 20,
            checkpoint_after: 1_000_000,
            waiting_bytes: 16 << 20,
            forget: Vec::new(),
            on_failure: OnFailure::default(),
        }
    }
}
