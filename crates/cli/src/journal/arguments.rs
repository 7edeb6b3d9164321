//! The argument that all commands on a journal share.

use lanecast_journal::Directory;
use std::path::PathBuf;

/// The journal that a command reads.
#[derive(Debug, clap::Args)]
pub(super) struct JournalArgs {
    /// The journal's directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl JournalArgs {
    pub(super) fn directory(&self) -> Directory {
        Directory::new(&self.directory)
    }
}
