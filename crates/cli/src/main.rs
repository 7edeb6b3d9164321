//! `lanecast`: publish, subscribe, look, measure.
#![forbid(unsafe_code)]

mod child;
mod clean;
mod command_line;
mod config;
mod content;
mod context;
mod counters;
mod delivery;
mod demo;
mod descriptors;
mod doctor;
#[cfg(test)]
mod features;
mod filter;
mod group;
mod journal;
mod life_lock;
mod long_wait;
mod ls;
mod manual;
mod output;
mod perf;
mod printable;
mod pubsub;
mod record;
mod recording;
mod refused_hosts;
mod replay;
mod report;
mod resolve;
mod serve;
mod sessions;
mod sow;
mod stat;
mod stop;
mod store;
mod table;
mod tap;
mod temp_domain;
#[cfg(feature = "top")]
mod top;
mod usage;
mod utc;
mod watch;

use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// The first page; a terminal of 80x24 shows it whole.
const FRONT_PAGE: &str = "\
Low-latency messaging: one topic, any distance

Usage: lanecast COMMAND [ARGUMENT]...

  lanecast demo                                      first of all: see it work
  lanecast sub prices                                in one terminal
  seq 9 | lanecast pub prices --wait-subscribers 1   in another

Messages   pub     publish lines            sub      print messages, filtered
           group   join a group of programs (pub, sub --server: by a server)
           demo    real processes at work   store    keep messages on disk
Looking    ls      sessions and topics      top      the same, live
           stat    counters and errors      clean    remains of dead processes
           tap     frames between hosts     record, replay   topics, on disk
Server     serve   be a content server      query    stored records
           watch   a live table of them     delete   remove some
           sow     records on disk          filter   explain, or try, a filter
Measuring  perf    experiments              report   figures as tables and pages
           doctor  disturbances of this machine
Set-up     config  settings                 resolve  where there is no multicast
           journal files on disk            completions, man

'lanecast help COMMAND' explains one.  -V, --version  prints the version.
";

/// Low-latency messaging: one topic, any distance.
#[derive(Debug, Parser)]
#[command(name = "lanecast", version, about = "Low-latency messaging: one topic, any distance")]
#[command(arg_required_else_help = true, override_help = FRONT_PAGE)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Publish lines, or length-prefixed messages, to programs or to a content server
    Pub(Box<pubsub::PubArgs>),
    /// Print the messages of topics, from programs or from a content server
    Sub(Box<pubsub::SubArgs>),
    /// Be the content server: clients publish, and subscribe to what a filter lets through
    Serve(serve::ServeArgs),
    /// The previous version's name of `pub --server`
    #[command(hide = true)]
    Publish(Box<pubsub::PubArgs>),
    /// The previous version's name of `sub --server`
    #[command(hide = true)]
    Subscribe(Box<pubsub::SubArgs>),
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
    /// Be a member of a group: talk to it, look into it
    #[command(subcommand)]
    Group(group::GroupCommand),
    /// Be a store: keep messages on disk for subscribers that come later
    Store(store::StoreArgs),
    /// Record topics into a directory, with the times at which messages arrived
    Record(record::RecordArgs),
    /// Publish a recording again: at its pace, faster or slower, paused, from a time on
    Replay(replay::ReplayArgs),
    /// Show real processes at work: rates, latencies, and what becomes of a killed one
    Demo(demo::DemoArgs),
    /// List sessions, topics and subscribers, with rates and lags
    Ls(ls::LsArgs),
    /// Show, and remove, what dead processes left behind
    Clean(clean::CleanArgs),
    /// Show processes' counters and distinct errors
    Stat(stat::StatArgs),
    /// Show the frames between hosts: of an interface, or of a capture file
    Tap(Box<tap::TapArgs>),
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
        /// The directory that they are written into; made if it does not exist
        #[arg(value_name = "DIRECTORY")]
        directory: std::path::PathBuf,
    },
}

fn main() -> ExitCode {
    let arguments = match arguments(perf::long_words(std::env::args_os())) {
        Ok(arguments) => arguments,
        Err(error) => return command_line::answer(&error),
    };
    run(arguments.command).unwrap_or_else(|error| {
        if output::is_broken_pipe(&error) {
            return ExitCode::SUCCESS;
        }
        output::warn(&output::words(&error));
        ExitCode::from(if usage::is_of_command_line(&error) { 2 } else { 1 })
    })
}

/// The arguments that `words` say.
fn arguments(words: Vec<OsString>) -> Result<Arguments, clap::Error> {
    let words = command_line::with_joined_values(words, &Arguments::command());
    Arguments::try_parse_from(&words).map_err(|error| {
        let parse = |words| Arguments::try_parse_from::<Vec<OsString>, _>(words).map(drop);
        command_line::with_range(error, &words, parse)
    })
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Pub(arguments) => pubsub::publish(&arguments),
        Command::Sub(arguments) => pubsub::subscribe(&arguments),
        Command::Publish(arguments) => {
            warn_old_name("publish", "pub");
            pubsub::publish(&arguments.with_server())
        }
        Command::Subscribe(arguments) => {
            warn_old_name("subscribe", "sub");
            pubsub::subscribe(&arguments.with_server())
        }
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Query(arguments) => content::query(&arguments),
        Command::Watch(arguments) => content::watch(&arguments),
        Command::Delete(arguments) => content::delete(&arguments),
        Command::Sow(command) => sow::run(&command),
        Command::Filter(command) => filter::run(&command),
        Command::Group(command) => group::run(&command),
        Command::Store(arguments) => store::run(&arguments),
        Command::Record(arguments) => record::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Ls(arguments) => ls::run(&arguments),
        Command::Clean(arguments) => clean::run(&arguments),
        Command::Stat(arguments) => stat::run(&arguments),
        Command::Tap(arguments) => tap::run(&arguments),
        #[cfg(feature = "top")]
        Command::Top(arguments) => top::run(&arguments),
        Command::Resolve(arguments) => resolve::run(&arguments),
        Command::Journal(command) => journal::run(&command),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Perf(command) => perf::run(&command, &stop::flag()?),
        Command::Report(arguments) => report::run(&arguments),
        Command::Config(arguments) => config::run(&arguments),
        Command::Completions { shell } => {
            let name = env!("CARGO_BIN_NAME");
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), name, &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Man { directory } => {
            manual::write(Arguments::command(), &directory)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Says that a command has another name now.
fn warn_old_name(old: &str, new: &str) {
    output::print_error(&format!(
        "{old} is now {new} --server; the old name goes with the next version"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    /// The options of `perf sub` about delivery alone stand under the heading of transports.
    #[test]
    fn options_of_measurements_stand_under_no_heading_of_others() {
        let all = Arguments::command();
        let perf = all.find_subcommand("perf").expect("a command");
        for command in perf.get_subcommands() {
            for option in command.get_arguments() {
                let heading = option.get_help_heading();
                let is_of_delivery = ["order", "give_up_after"].contains(&option.get_id().as_str());
                let expected = is_of_delivery.then_some("Transports");
                assert_eq!(heading, expected, "{} {}", command.get_name(), option.get_id());
            }
        }
    }

    /// A command's own options stand under no heading, those of the connection under the server's:
    /// clap puts each that follows a heading under it.
    #[test]
    fn options_stand_under_one_heading() {
        let of_commands = [
            ("pub", &["from-file", "binary", "rate", "count"][..]),
            ("sub", &["filter", "count"]),
            ("query", &["filter", "order-by", "top", "select"]),
            ("watch", &["filter", "order-by", "columns"]),
            ("delete", &["filter", "keys", "like"]),
        ];
        let all = Arguments::command();
        for (name, options) in of_commands {
            let command = all.find_subcommand(name).expect("a command");
            let heading = |option: &str| {
                let found = command.get_arguments().find(|it| it.get_long() == Some(option));
                found.expect(option).get_help_heading()
            };
            for option in options {
                assert_eq!(heading(option), None, "{name} --{option}");
            }
            for option in ["server", "user", "ca"] {
                assert_eq!(heading(option), Some("Content server"), "{name} --{option}");
            }
        }
    }
}
