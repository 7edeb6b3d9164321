//! Settings of the offline policy for slow consumers.

use std::path::PathBuf;
use std::time::Duration;

/// The offline policy: messages of a client that reads too slowly wait on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfflineSettings {
    /// Directory of the unnamed files, one for each offline client.
    pub directory: PathBuf,
    /// The most bytes on disk for a client.
    pub bytes_max: u64,
    /// The longest time that a message waits for its client; then the client is disconnected.
    pub age_max: Duration,
}

impl OfflineSettings {
    /// The defaults, in that directory.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        let age_max = Duration::from_secs(600);
        Self { directory: directory.into(), bytes_max: 1 << 30, age_max }
    }
}
