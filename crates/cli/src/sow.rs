//! `lanecast sow`: what a server keeps on disk.

mod dump;

use std::process::ExitCode;

/// Commands about stored records.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum SowCommand {
    /// Print the records that a directory holds, without a server, damaged or not
    Dump(dump::DumpArgs),
}

pub(crate) fn run(command: &SowCommand) -> anyhow::Result<ExitCode> {
    match command {
        SowCommand::Dump(arguments) => dump::run(arguments),
    }
}
