//! Letters of the UM throughput tools that publishers and subscribers share.

use super::arguments::persistence;
use super::context::ContextArgs;
use std::path::PathBuf;

/// Arguments of both sides.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct UmArgs {
    /// Persistence: '' for none, which is all there is in this version
    #[arg(short = 'p', long, value_name = "MODE", default_value = "", hide_default_value = true)]
    #[arg(value_parser = persistence)]
    persistence: String,

    /// One more configuration file, applied after those of -c
    #[arg(short = 'x', long, value_name = "FILE")]
    xml_config: Option<PathBuf>,
}

impl UmArgs {
    /// `context` with the file of `-x`.
    pub(super) fn context(&self, context: &ContextArgs) -> ContextArgs {
        let mut context = context.clone();
        context.config.extend(self.xml_config.clone());
        context
    }
}
