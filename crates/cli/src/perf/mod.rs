//! `lanecast perf`: the measuring tools, with the letters and lines of the source documents.

mod context;
mod files;
mod jitter;
mod pipes;
mod priority;
mod progress;
mod publish;
mod readers;
mod record;
mod rings;
mod smx;
mod subscribe;
mod threads;

pub(crate) use context::ContextArgs;
pub(crate) use jitter::JitterArgs;
pub(crate) use pipes::PipesArgs;
pub(crate) use publish::PubArgs;
pub(crate) use rings::RingsArgs;
pub(crate) use smx::SmxArgs;
pub(crate) use subscribe::SubArgs;

use lanecast_base::clock::Clock;
use lanecast_base::{Size, WaitStrategy};
use lanecast_carrier::Carrier;
use lanecast_measure::{Raise, Setup, parse_number};
use std::process::ExitCode;

/// The exit status of a run that ended well, but in which messages were lost, repeated or
/// damaged. 1 is an error, 2 a wrong command line.
const INCOMPLETE: u8 = 3;

/// Measures rate, latency and interruptions.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum PerfCommand {
    /// Publish at a rate, or as fast as it goes, and say how fast that was
    Pub(PubArgs),
    /// Count what arrives, check its order, measure its latency
    Sub(SubArgs),
    /// Measure how this host interrupts a thread
    Jitter(JitterArgs),
    /// Run every experiment of the SMX document, and show the figures beside the document's
    SmxReport(SmxArgs),
    /// Measure messages between two threads through pipes, beside local sockets
    Pipes(PipesArgs),
    /// Measure messages between threads through rings of every shape
    Rings(RingsArgs),
}

/// A carrier made from [`ContextArgs`], and what it was set to.
#[derive(Debug)]
pub(crate) struct Opened<C: Carrier> {
    /// The carrier.
    pub(crate) carrier: C,
    /// How a publisher waits for room.
    pub(crate) publisher_wait: WaitStrategy,
    /// How a subscriber waits for messages.
    pub(crate) subscriber_wait: WaitStrategy,
    /// A publisher's window.
    pub(crate) window: Size,
    /// How often a publisher has found no room, if the carrier counts that.
    pub(crate) back_pressured: fn(&C::Publisher) -> Option<u64>,
}

impl<C: Carrier> Opened<C> {
    fn setup(&self, wait: WaitStrategy, raise: Raise) -> Setup {
        Setup { wait, window: self.window, raise, clock: Clock::host() }
    }
}

/// Runs a command over the carrier that `open` makes; `stop` ends it early.
pub(crate) fn run<C: Carrier + Sync>(
    command: &PerfCommand,
    open: impl FnOnce(&ContextArgs) -> anyhow::Result<Opened<C>>,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<ExitCode> {
    match command {
        PerfCommand::Pub(arguments) => publish::run(arguments, open, stop),
        PerfCommand::Sub(arguments) => subscribe::run(arguments, open, stop),
        PerfCommand::Jitter(arguments) => jitter::run(arguments, stop),
        PerfCommand::SmxReport(arguments) => smx::run(arguments, stop),
        PerfCommand::Pipes(arguments) => pipes::run(arguments, stop),
        PerfCommand::Rings(arguments) => rings::run(arguments, stop),
    }
}

/// A CPU's number, or −1 for none.
fn parse_cpu(text: &str) -> Result<i64, lanecast_measure::NumberError> {
    if text == "-1" { Ok(-1) } else { parse_number::<u32>(text).map(i64::from) }
}

#[cfg(test)]
mod tests;
