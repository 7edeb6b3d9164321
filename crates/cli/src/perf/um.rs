//! Letters of the UM throughput tools that publishers and subscribers share.

use super::context::ContextArgs;
use super::persistence::PersistenceArgs;
use std::path::PathBuf;

/// Arguments of both sides.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct UmArgs {
    #[command(flatten)]
    pub(super) persistence: PersistenceArgs,

    /// One more configuration file, applied after those of -c
    #[arg(short = 'x', long, value_name = "FILE")]
    xml_config: Option<PathBuf>,
}

impl UmArgs {
    /// `context` with the file of `-x`, and with the stores of a program with the stable id `id`.
    pub(super) fn context(&self, context: &ContextArgs, id: u64) -> anyhow::Result<ContextArgs> {
        let mut context = context.clone();
        context.config.extend(self.xml_config.clone());
        context.set_persistence(&self.persistence, id)?;
        Ok(context)
    }
}
