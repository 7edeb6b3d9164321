//! Where durable topics are kept, and what else may be chosen about that.

use serde::Deserialize;
use std::path::PathBuf;

/// Where durable topics are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageConfig {
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
    /// What the server does when the disk has failed.
    pub on_failure: OnFailure,
}

/// What a server does when its disk has failed for good, so that nothing is durable any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// It says so, refuses what is to be durable, and goes on with all else.
    #[default]
    Continue,
    /// It says so, and is to be ended: see [`Server::failure`](crate::Server::failure).
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
