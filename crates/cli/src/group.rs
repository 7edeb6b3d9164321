//! `lanecast group`: be a member of a group, to talk to it, or look at groups.

mod input;
mod join;
mod join_args;
pub(crate) mod ls;
mod other_version;
mod report;

use std::process::ExitCode;

/// Subcommands of `group`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum GroupCommand {
    /// Join a group: print its views and messages, and send the lines that are typed
    Join(Box<join_args::JoinArgs>),
    /// List groups with their members, views, and how far each member is behind
    Ls(Box<ls::LsArgs>),
}

pub(crate) fn run(command: &GroupCommand) -> anyhow::Result<ExitCode> {
    match command {
        GroupCommand::Join(arguments) => join::run(arguments),
        GroupCommand::Ls(arguments) => ls::run(arguments),
    }
}
