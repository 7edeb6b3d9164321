//! `lanecast group`: be a member of a group, to talk to it and to look into it.

mod input;
mod join;
mod join_args;
mod report;

use std::process::ExitCode;

/// Subcommands of `group`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum GroupCommand {
    /// Join a group: print its views and messages, and send the lines that are typed
    Join(Box<join_args::JoinArgs>),
}

pub(crate) fn run(command: &GroupCommand) -> anyhow::Result<ExitCode> {
    match command {
        GroupCommand::Join(arguments) => join::run(arguments),
    }
}
