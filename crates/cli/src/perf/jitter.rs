//! `lanecast perf jitter`.

use super::arguments::parse_cpu;
use super::files::{Files, FilesArgs, Times};
use super::priority::PriorityArgs;
use crate::output::{print, print_error, print_line};
use anyhow::Context;
use lanecast::parse_duration;
use lanecast_measure::jitter::{self, Read, Settings};
use lanecast_measure::{
    CardCpus, Head, Kind, Pinning, PriorityChange, count_sends, nearest, parse_number, report,
};
use lanecast_os::interface;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

/// The CPU of the thread, unless another is asked for: the publisher's.
const DEFAULT_CPU: usize = 1;

/// Arguments of `perf jitter`. Numbers are decimal, or hexadecimal after 0x.
#[derive(Debug, clap::Args)]
pub(crate) struct JitterArgs {
    /// CPU of the thread; -1 for any [default: the nearest to the network card, or 1]
    #[arg(short = 'a', long = "cpu", value_name = "CPU", value_parser = parse_cpu)]
    #[arg(allow_negative_numbers = true)]
    cpu: Option<i64>,

    /// Readings of the clock, back to back
    #[arg(short = 'j', long, value_name = "LOOPS", default_value = "10000000")]
    #[arg(value_parser = parse_number::<u64>)]
    jitter_loops: u64,

    /// Send multicast by this interface from each CPU first, and take the one that sends most
    ///
    /// Without it, the CPU is one that the system calls near to a network card, or 1 if it calls
    /// none so.
    #[arg(short = 'i', long, value_name = "INTERFACE", conflicts_with = "cpu")]
    interface: Option<String>,

    /// Group and port that the datagrams of -i go to
    #[arg(short = 'g', long, value_name = "GROUP", default_value = "239.192.71.2:14402")]
    #[arg(requires = "interface", value_parser = parse_group)]
    group: SocketAddr,

    /// Time for which each CPU sends
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    #[arg(requires = "interface")]
    send_time: Duration,

    /// Which clock to read
    #[arg(long, value_enum, default_value = "host")]
    clock: ClockName,

    /// Print the result as one JSON object, and nothing else
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    files: FilesArgs,

    #[command(flatten)]
    priority: PriorityArgs,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ClockName {
    /// The one that latencies are measured with: the processor's counter where it can be trusted
    Host,
    /// CLOCK_MONOTONIC
    Monotonic,
}

impl JitterArgs {
    /// The CPU unless one is asked for: the nearest to a network card.
    fn default_cpu(&self, stop: &dyn Fn() -> bool) -> anyhow::Result<usize> {
        if let Some(name) = &self.interface {
            return self.measure_nearest(name, stop);
        }
        let card = CardCpus::of_any().filter(|_| self.cpu.is_none());
        let near = card.and_then(|card| Some((card.choose(DEFAULT_CPU)?, card)));
        let Some((cpu, card)) = near else { return Ok(DEFAULT_CPU) };
        print_error(&format!("CPU {cpu} is near {} (NUMA node {})", card.interface, card.node));
        Ok(cpu)
    }

    /// Sends from each CPU, prints how much, and returns the CPU that sent most.
    fn measure_nearest(&self, name: &str, stop: &dyn Fn() -> bool) -> anyhow::Result<usize> {
        let (interface, address) = interface::choose(name)?;
        let card = CardCpus::of(&interface.name);
        let counted = count_sends((&interface, address), self.group, self.send_time, stop)
            .with_context(|| format!("cannot send to {} by {}", self.group, interface.name))?;
        for it in &counted {
            let near = card.as_ref().is_some_and(|card| card.cpus.contains(&it.cpu));
            let near = if near { "near=1, " } else { "" };
            // The form of the documents' tool; with --json the result alone is printed.
            if !self.json {
                print_line(&format!("cpu={}, num_sends={}, {near}", it.cpu, it.sends))?;
            }
        }
        nearest(&counted).context("no CPU of this process can send: leave out -i, and give -a")
    }
}

fn parse_group(text: &str) -> Result<SocketAddr, String> {
    let group: Option<SocketAddr> = text.parse().ok();
    group
        .filter(|group| group.ip().is_multicast() && group.port() > 0)
        .ok_or_else(|| format!("'{text}' is not a group with its port, such as 239.192.71.2:14402"))
}

pub(super) fn run(arguments: &JitterArgs, stop: &dyn Fn() -> bool) -> anyhow::Result<ExitCode> {
    let files = arguments.files.open(Times::One)?;
    let place = Pinning::on_this_host(arguments.cpu, arguments.default_cpu(stop)?)?;
    let read = match arguments.clock {
        ClockName::Host => Read::Host,
        ClockName::Monotonic => Read::Monotonic,
    };
    let settings =
        Settings { read, ..settings(arguments.jitter_loops, place, arguments.priority.apply()?) };
    if !arguments.json {
        print_line(&report::jitter_options(&settings))?;
    }
    measure(settings, arguments.json, files, stop)
}

pub(super) const fn settings(loops: u64, place: Pinning, raise: PriorityChange) -> Settings {
    Settings { loops, place, read: Read::Host, raise }
}

/// Runs the test, writes its result to `files` and prints it.
pub(super) fn measure(
    settings: Settings,
    json: bool,
    files: Files,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<ExitCode> {
    let head = Head::now();
    let result = jitter::run(&settings, stop)?;
    let line = head.line(Kind::Jitter, &result)?;
    // The files first: they matter more than what is printed.
    files.write(std::slice::from_ref(&line))?;
    let shown = if json { print_line(&line) } else { print(&report::jitter_result(&result)) };
    Ok(shown.map(|()| ExitCode::SUCCESS)?)
}
