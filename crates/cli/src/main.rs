//! `lanecast`: publish, subscribe, look, measure.
#![forbid(unsafe_code)]

mod child;
mod clean;
mod config;
mod content;
mod context;
mod counters;
mod demo;
mod doctor;
#[cfg(test)]
mod features;
mod filter;
mod journal;
mod ls;
mod output;
mod perf;
mod printable;
mod pubsub;
mod report;
mod resolve;
mod serve;
mod sessions;
mod sow;
mod stat;
mod stop;
mod table;
#[cfg(feature = "top")]
mod top;
mod watch;

use anyhow::Context as _;
use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

/// Low-latency messaging: one topic, any distance.
#[derive(Debug, Parser)]
#[command(name = "lanecast", version, about = "Low-latency messaging: one topic, any distance")]
#[command(arg_required_else_help = true)]
#[command(after_help = "Start with: lanecast demo")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Publish lines, or length-prefixed messages, from standard input or a file
    Pub(pubsub::PubArgs),
    /// Write the messages of topics to standard output
    Sub(pubsub::SubArgs),
    /// Be the content server: clients publish, and subscribe to what a filter lets through
    Serve(serve::ServeArgs),
    /// Publish lines to a topic of a content server
    Publish(content::PublishArgs),
    /// Show the messages of a content server's topic that a filter lets through
    Subscribe(content::SubscribeArgs),
    /// Show the records that a content server keeps of a topic
    Query(content::QueryArgs),
    /// Watch a query of a content server: a table that lives, or changes as lines
    Watch(content::WatchArgs),
    /// Remove records that a content server keeps of a topic
    Delete(content::DeleteArgs),
    /// Look at the records that a content server keeps on disk
    #[command(subcommand)]
    Sow(sow::SowCommand),
    /// Explain a filter, or try it on messages, without a server
    #[command(subcommand)]
    Filter(filter::FilterCommand),
    /// Show real processes at work: rates, latencies, and what becomes of a killed one
    Demo(demo::DemoArgs),
    /// List sessions, topics and subscribers, with rates and lags
    Ls(ls::LsArgs),
    /// Show, and remove, what dead processes left behind
    Clean(clean::CleanArgs),
    /// Show processes' counters and distinct errors
    Stat(stat::StatArgs),
    /// Watch streams, subscribers, counters and errors live in the terminal
    #[cfg(feature = "top")]
    Top(top::TopArgs),
    /// Be the daemon at which programs find each other where there is no multicast
    Resolve(resolve::ResolveArgs),
    /// Look into a journal on disk, verify it, print its records, repair it
    #[command(subcommand)]
    Journal(journal::JournalCommand),
    /// Find what on this machine disturbs measurements, how much, and how to mend it
    Doctor(doctor::DoctorArgs),
    /// Measure rate, latency and interruptions
    #[command(subcommand)]
    Perf(Box<perf::PerfCommand>),
    /// Make measurements readable: as tables, as a page, for HdrHistogram's tools
    Report(report::ReportArgs),
    /// Print the settings in force as a commented file
    Config(config::ConfigArgs),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the pages of the manual, one for each command, for `man ./lanecast-query.1`
    Man {
        /// The directory that they are written into
        #[arg(value_name = "DIRECTORY")]
        directory: std::path::PathBuf,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    run(&arguments.command).unwrap_or_else(|error| {
        if output::is_broken_pipe(&error) {
            return ExitCode::SUCCESS;
        }
        output::warn(&output::words(&error));
        ExitCode::FAILURE
    })
}

fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Pub(arguments) => pubsub::publish(arguments),
        Command::Sub(arguments) => pubsub::subscribe(arguments),
        Command::Serve(arguments) => serve::run(arguments),
        Command::Publish(arguments) => content::publish(arguments),
        Command::Subscribe(arguments) => content::subscribe(arguments),
        Command::Query(arguments) => content::query(arguments),
        Command::Watch(arguments) => content::watch(arguments),
        Command::Delete(arguments) => content::delete(arguments),
        Command::Sow(command) => sow::run(command),
        Command::Filter(command) => filter::run(command),
        Command::Demo(arguments) => demo::run(arguments),
        Command::Ls(arguments) => ls::run(arguments),
        Command::Clean(arguments) => clean::run(arguments),
        Command::Stat(arguments) => stat::run(arguments),
        #[cfg(feature = "top")]
        Command::Top(arguments) => top::run(arguments),
        Command::Resolve(arguments) => resolve::run(arguments),
        Command::Journal(command) => journal::run(command),
        Command::Doctor(arguments) => doctor::run(arguments),
        Command::Perf(command) => perf::run(command, &stop::flag()?),
        Command::Report(arguments) => report::run(arguments),
        Command::Config(arguments) => config::run(arguments),
        Command::Completions { shell } => {
            let name = env!("CARGO_BIN_NAME");
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), name, &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man { directory } => {
            let written = clap_mangen::generate_to(Arguments::command(), directory);
            written.with_context(|| format!("cannot write into {}", directory.display()))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
