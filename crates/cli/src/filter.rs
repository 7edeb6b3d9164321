//! `lanecast filter`: what a filter means, and what it lets through, without a server.

mod cost;
mod excerpt;
mod explain;
mod judge;
mod test;

use crate::content::KindArgs;
use crate::printable::printable;
use lanecast_filter::Filter;
use std::process::ExitCode;

/// What to do with a filter.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum FilterCommand {
    /// Show how a filter is read, in which order it is evaluated, and how an index finds it
    Explain(explain::ExplainArgs),
    /// Print those of the messages in a file that a filter lets through, as grep does
    Test(test::TestArgs),
}

/// The filter, and what messages are.
#[derive(Debug, clap::Args)]
struct FilterArgs {
    /// The filter, such as "/symbol = 'IBM' and /qty >= 5000"
    #[arg(value_name = "FILTER")]
    filter: String,

    #[command(flatten)]
    kind: KindArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl FilterArgs {
    /// The filter; if it is none, the error points at the place.
    fn parse(&self) -> anyhow::Result<Filter> {
        Filter::parse(&self.filter).map_err(|error| {
            let shown = error.show(&self.filter);
            let lines: Vec<String> = shown.lines().map(printable).collect();
            anyhow::anyhow!("bad filter\n{}", lines.join("\n"))
        })
    }
}

/// As grep, whose status 1 means that nothing was found, both fail with 2.
pub(crate) fn run(command: &FilterCommand) -> anyhow::Result<ExitCode> {
    let result = match command {
        FilterCommand::Explain(arguments) => explain::run(arguments),
        FilterCommand::Test(arguments) => test::run(arguments),
    };
    result.or_else(|error| {
        if crate::is_broken_pipe(&error) {
            return Err(error);
        }
        crate::output::complain(&crate::output::words(&error));
        Ok(ExitCode::from(2))
    })
}
