//! From command-line arguments to a context.

use lanecast::{Builder, Context};
use std::path::PathBuf;

/// Which domain to look at or take part in.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DomainArgs {
    /// Configuration file; can be repeated, a later one goes before an earlier one
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,

    /// The domain's directory: those with the same one find each other
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

impl DomainArgs {
    pub(crate) fn builder(&self) -> anyhow::Result<Builder> {
        let mut builder = self.config.iter().fold(Context::builder(), Builder::file);
        if let Some(directory) = &self.directory {
            builder = builder.set("shm.directory", directory.display())?;
        }
        Ok(builder)
    }

    /// A builder for tools that meet other programs, even if these keep to themselves.
    pub(crate) fn outward(&self) -> anyhow::Result<Builder> {
        Ok(self.builder()?.set("shm.reach", "host")?)
    }

    /// The domain's directory, without opening anything.
    pub(crate) fn directory(&self) -> anyhow::Result<PathBuf> {
        Ok(self.builder()?.config()?.shm.directory)
    }
}
