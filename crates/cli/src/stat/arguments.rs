//! Arguments of `lanecast stat`.

use crate::context::DomainArgs;
use crate::watch::WatchArgs;

/// Arguments of `stat`.
#[derive(Debug, clap::Args)]
pub(crate) struct StatArgs {
    /// Show only processes, sessions, topics, counters and errors whose name contains this, or a
    /// process's number
    #[arg(long, value_name = "TEXT")]
    pub(super) filter: Option<String>,

    /// Show the latest losses on the network instead: who missed what, when, and how that ended
    #[arg(long)]
    pub(super) losses: bool,

    /// Print one JSON array; with --watch, one for each look, on a line
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    pub(super) watch: WatchArgs,

    #[command(flatten)]
    pub(super) domain: DomainArgs,
}
