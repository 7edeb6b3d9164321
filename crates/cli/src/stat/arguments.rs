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

    /// Show losses on the network instead: who missed what, when, and how it was recovered
    #[arg(long)]
    pub(super) losses: bool,

    /// With --losses: the most losses of a session that are shown one by one, the latest
    #[arg(long, value_name = "N", default_value_t = 10, requires = "losses")]
    pub(super) last: usize,

    /// Print one JSON array; with --watch, one for each look, on a line
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    pub(super) watch: WatchArgs,

    #[command(flatten)]
    pub(super) domain: DomainArgs,
}
