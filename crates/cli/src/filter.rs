//! `lanecast filter`: what a filter means, and what it lets through, without a server.

mod arguments;
mod cost;
mod evaluator;
mod excerpt;
mod explain;
mod test;

pub(crate) use arguments::{filter_text, parse};
pub(crate) use evaluator::Evaluator;

use std::process::ExitCode;

/// Commands about a filter.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum FilterCommand {
    /// Show how a filter is read, in which order it is evaluated, and how an index finds it
    Explain(explain::ExplainArgs),
    /// Print those of the messages in a file that a filter lets through, as grep does
    Test(test::TestArgs),
}

/// As grep, whose status 1 means that nothing was found, both fail with 2.
pub(crate) fn run(command: &FilterCommand) -> anyhow::Result<ExitCode> {
    let result = match command {
        FilterCommand::Explain(arguments) => explain::run(arguments),
        FilterCommand::Test(arguments) => test::run(arguments),
    };
    result.or_else(|error| {
        if crate::output::is_broken_pipe(&error) {
            return Err(error);
        }
        crate::output::warn(&crate::output::words(&error));
        Ok(ExitCode::from(2))
    })
}
