//! Arguments that `filter explain` and `filter test` share.

use crate::content::KindArgs;
use crate::printable::printable;
use lanecast_filter::Filter;

/// The filter, and the type of the messages.
#[derive(Debug, clap::Args)]
pub(super) struct FilterArgs {
    /// The filter, such as "/symbol = 'IBM' and /qty >= 5000"
    #[arg(value_name = "FILTER")]
    pub(super) filter: String,

    #[command(flatten)]
    pub(super) kind: KindArgs,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl FilterArgs {
    /// Parses the filter; an error points at the place in its text.
    pub(super) fn parse(&self) -> anyhow::Result<Filter> {
        parse(&self.filter)
    }
}

/// Parses a filter; an error points at the place in its text.
pub(crate) fn parse(filter: &str) -> anyhow::Result<Filter> {
    Filter::parse(filter).map_err(|error| {
        let shown = error.show(filter);
        let lines: Vec<String> = shown.lines().map(printable).collect();
        anyhow::anyhow!("bad filter\n{}", lines.join("\n"))
    })
}
