//! `lanecast perf jitter`.

use super::arguments::parse_cpu;
use super::files::{Files, FilesArgs, Times};
use super::priority::PriorityArgs;
use crate::output::{print, print_line};
use lanecast_measure::jitter::{self, Read, Settings};
use lanecast_measure::{Head, Kind, Pinning, PriorityChange, parse_number, report};
use std::process::ExitCode;

/// The CPU of the thread, unless another is asked for: the publisher's.
const DEFAULT_CPU: usize = 1;

/// Arguments of `perf jitter`. Numbers are decimal, or hexadecimal after 0x.
#[derive(Debug, clap::Args)]
pub(crate) struct JitterArgs {
    /// CPU of the thread; -1 for any [default: 1, if there is one]
    #[arg(short = 'a', long = "cpu", value_name = "CPU", value_parser = parse_cpu)]
    #[arg(allow_negative_numbers = true)]
    cpu: Option<i64>,

    /// Readings of the clock, back to back
    #[arg(short = 'j', long, value_name = "LOOPS", default_value = "10000000")]
    #[arg(value_parser = parse_number::<u64>)]
    jitter_loops: u64,

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

pub(super) fn run(arguments: &JitterArgs, stop: &dyn Fn() -> bool) -> anyhow::Result<ExitCode> {
    let files = arguments.files.open(Times::One)?;
    let place = Pinning::on_this_host(arguments.cpu, DEFAULT_CPU)?;
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

/// Runs the test, prints its result and writes it to `files`.
pub(super) fn measure(
    settings: Settings,
    json: bool,
    files: Files,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<ExitCode> {
    let head = Head::now();
    let result = jitter::run(&settings, stop)?;
    let line = head.line(Kind::Jitter, &result)?;
    if json {
        print_line(&line)?;
    } else {
        print(&report::jitter_result(&result))?;
    }
    files.write(&[line])?;
    Ok(ExitCode::SUCCESS)
}
