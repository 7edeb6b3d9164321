//! `lanecast perf`: the measuring tools, with the letters and lines of the source documents.

mod arguments;
mod bare;
mod context;
mod fanout;
mod files;
mod floor;
mod group;
mod groups;
mod jitter;
mod lat;
mod namespaces;
mod persist;
mod persistence;
mod ping;
mod pipes;
mod pong;
mod priority;
mod progress;
mod publish;
mod readers;
mod record;
mod rings;
mod round_trip;
mod smx;
mod store_process;
mod subscribe;
mod threads;
mod transport_name;
mod transports;
mod um;

pub(crate) use bare::BareArgs;
pub(crate) use context::ContextArgs;
pub(crate) use fanout::FanoutArgs;
pub(crate) use floor::FloorArgs;
pub(crate) use group::{GroupArgs, SeriesArgs as GroupReportArgs, long_words};
pub(crate) use jitter::JitterArgs;
pub(crate) use lat::LatArgs;
pub(crate) use persist::PersistReportArgs;
pub(crate) use ping::PingArgs;
pub(crate) use pipes::PipesArgs;
pub(crate) use pong::PongArgs;
pub(crate) use publish::PubArgs;
pub(crate) use rings::RingsArgs;
pub(crate) use smx::SmxArgs;
pub(crate) use subscribe::SubArgs;

use std::process::ExitCode;

/// The groups of experiments stand where a list of subcommands would.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}{after-help}\n\n\
    Options:\n{options}\n\n'lanecast help perf EXPERIMENT' explains one.";

/// Measures rate, latency and interruptions.
#[derive(Debug, clap::Subcommand)]
#[command(help_template = TEMPLATE, after_help = groups::text())]
pub(crate) enum PerfCommand {
    /// List the experiments in groups
    List,
    /// Publish at a rate, or as fast as it goes, and say how fast that was
    Pub(PubArgs),
    /// Count what arrives, check its order, measure its latency
    Sub(SubArgs),
    /// Measure round trips of messages that are sent on a schedule
    Ping(PingArgs),
    /// Send a ping's messages back
    Pong(PongArgs),
    /// Measure what this machine's own UDP and TCP sockets can do
    Floor(FloorArgs),
    /// Measure how this host interrupts a thread
    Jitter(JitterArgs),
    /// Run every experiment of the SMX document, and show the figures beside the document's
    SmxReport(SmxArgs),
    /// Run the UM latency document's streaming tests, and show the figures beside the document's
    LatReport(LatArgs),
    /// Run the UM throughput document's series with and without stores, and show the figures beside
    /// the document's and the disk's ceiling
    PersistReport(PersistReportArgs),
    /// Measure messages between two threads through pipes, beside local sockets
    Pipes(PipesArgs),
    /// Measure messages between threads through rings of every shape
    Rings(RingsArgs),
    /// Measure bursts from a few publishers to many subscribers, each with a filter
    Fanout(FanoutArgs),
    /// Measure a group in which every member receives all messages of its senders
    Group(Box<GroupArgs>),
    /// Run the JGroups document's matrix of members and sizes, and show the figures beside the
    /// document's
    GroupReport(GroupReportArgs),
    /// One end of lat-report's round trips over bare sockets
    #[command(hide = true)]
    Bare(BareArgs),
}

/// Runs a command; `stop` ends it early.
pub(crate) fn run(command: &PerfCommand, stop: &dyn Fn() -> bool) -> anyhow::Result<ExitCode> {
    match command {
        PerfCommand::List => {
            crate::output::print_line(&groups::text())?;
            Ok(ExitCode::SUCCESS)
        }
        PerfCommand::Pub(arguments) => publish::run(arguments, stop),
        PerfCommand::Sub(arguments) => subscribe::run(arguments, stop),
        PerfCommand::Ping(arguments) => ping::run(arguments, stop),
        PerfCommand::Pong(arguments) => pong::run(arguments, stop),
        PerfCommand::Floor(arguments) => floor::run(arguments, stop),
        PerfCommand::Jitter(arguments) => jitter::run(arguments, stop),
        PerfCommand::SmxReport(arguments) => smx::run(arguments, stop),
        PerfCommand::LatReport(arguments) => lat::run(arguments, stop),
        PerfCommand::PersistReport(arguments) => persist::run(arguments, stop),
        PerfCommand::Pipes(arguments) => pipes::run(arguments, stop),
        PerfCommand::Rings(arguments) => rings::run(arguments, stop),
        PerfCommand::Fanout(arguments) => fanout::run(arguments, stop),
        PerfCommand::Group(arguments) => group::run(arguments, stop),
        PerfCommand::Bare(arguments) => bare::run(arguments),
        PerfCommand::GroupReport(arguments) => group::run_series(arguments, stop),
    }
}

#[cfg(test)]
mod tests;
