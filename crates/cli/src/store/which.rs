//! The stores that an administrative command is about.

use crate::context::WayArgs;
use lanecast::{Context, parse_duration};
use lanecast_stats::{Role, StatsSnapshot};
use std::time::Duration;

/// Stores, by name or as found.
#[derive(Debug, clap::Args)]
pub(super) struct WhichArgs {
    /// Stores; by default those that are found
    #[arg(value_name = "STORE")]
    names: Vec<String>,

    /// Longest time to wait for answers
    #[arg(long = "for", value_name = "DURATION", default_value = "3s")]
    #[arg(value_parser = parse_duration)]
    pub(super) time: Duration,

    #[command(flatten)]
    pub(super) way: WayArgs,
}

impl WhichArgs {
    /// Names of the stores.
    pub(super) fn stores(&self, context: &Context) -> anyhow::Result<Vec<String>> {
        if !self.names.is_empty() {
            return Ok(self.names.clone());
        }
        let configured: Vec<String> = context.config().persistence.stores.concat();
        let look = StatsSnapshot::take(&context.config().shm.directory)?;
        let stores = look.reports.iter().filter(|it| it.is_alive && it.role == Role::Store);
        let mut names: Vec<String> = stores.map(|it| it.address.clone()).collect();
        // Those of the configuration on other hosts, unless the stores here are others.
        if names.is_empty() || names.iter().any(|name| configured.contains(name)) {
            names.extend(configured);
        }
        names.sort();
        names.dedup();
        Ok(names)
    }
}
