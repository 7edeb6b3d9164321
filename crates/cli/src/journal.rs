//! `lanecast journal`.

mod arguments;
mod dump;
mod inspect;
mod repair;

use std::process::ExitCode;

/// Commands about a journal.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum JournalCommand {
    /// Show a journal's segments and how far it goes, at once, beside a living owner
    Inspect(inspect::InspectArgs),
    /// Read and check every record
    Verify(inspect::VerifyArgs),
    /// Print records, as lines or JSON, to the end or following it
    Dump(dump::DumpArgs),
    /// Cut a damaged journal to the longest beginning that is right
    Repair(repair::RepairArgs),
}

pub(crate) fn run(command: &JournalCommand) -> anyhow::Result<ExitCode> {
    match command {
        JournalCommand::Inspect(arguments) => inspect::inspect(arguments),
        JournalCommand::Verify(arguments) => inspect::verify(arguments),
        JournalCommand::Dump(arguments) => dump::run(arguments),
        JournalCommand::Repair(arguments) => repair::run(arguments),
    }
}
