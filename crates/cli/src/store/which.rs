//! The stores that an administrative command is about.

use crate::context::WayArgs;
use anyhow::ensure;
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
        let mut names = self.names.clone();
        if names.is_empty() {
            names = Self::found(context)?;
        }
        names.sort();
        names.dedup();
        ensure!(
            !names.is_empty(),
            "no store is found: name one, or start one with `lanecast store`"
        );
        Ok(names)
    }

    /// Names of the stores of this host and of the configuration.
    fn found(context: &Context) -> anyhow::Result<Vec<String>> {
        let persistence = &context.config().persistence;
        let of_topics = persistence.topic_stores.iter().flat_map(|(_, stores)| stores);
        let configured: Vec<String> =
            persistence.stores.iter().chain(of_topics).flatten().cloned().collect();
        let look = StatsSnapshot::take(&context.config().shm.directory)?;
        let stores = look.reports.iter().filter(|it| it.is_alive && it.role == Role::Store);
        let mut names: Vec<String> = stores.map(|it| it.address.clone()).collect();
        // Those of the configuration on other hosts, unless the stores here are others.
        if names.is_empty() || names.iter().any(|name| configured.contains(name)) {
            names.extend(configured);
        }
        Ok(names)
    }
}
