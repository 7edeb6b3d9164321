//! Arguments that `filter explain` and `filter test` share.

use crate::content::KindArgs;
use crate::printable::printable;
use crate::usage::wrong_argument;
use lanecast_filter::{Filter, FilterError};

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
    Filter::parse(filter).map_err(|error| wrong_argument(words(filter, &error)))
}

/// The text of an option that is a filter: parsed at once, since a server that has to be reached
/// first, and other programs, say later what is wrong. Without text there is no filter.
pub(crate) fn filter_text(text: &str) -> Result<String, String> {
    match Filter::parse(text) {
        Err(error) if !text.is_empty() => Err(words(text, &error)),
        _ => Ok(text.to_owned()),
    }
}

fn words(filter: &str, error: &FilterError) -> String {
    let shown = error.show(filter);
    let lines: Vec<String> = shown.lines().map(printable).collect();
    format!("bad filter\n{}", lines.join("\n"))
}
