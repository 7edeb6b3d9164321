//! `lanecast perf smx-report`: the SMX document's series, with processes of this program.
//!
//! This process only starts the measured ones and waits for their lines; between two runs it
//! tells how far it is, and during a run it sleeps.

mod runner;

use super::context::ContextArgs;
use super::files::{Files, Times};
use super::progress::Progress;
use super::record::Record;
use crate::output::{INCOMPLETE, words};
use lanecast_base::parse_duration;
use lanecast_measure::smx::{Experiment, Placement, Series, Turn};
use lanecast_measure::{Head, PriorityChange, PriorityRequest};
use runner::Runner;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `perf smx-report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Runs every experiment of the SMX document with processes of its own, in \
    turn, and shows the figures beside the document's. --quick takes less than a minute, the \
    whole series about fifteen.\n\
    Experiments: jitter, size, workload, slow, latency, generic, receivers, numa.\n\
    With peers: bench/rivals/run.sh --quick --json rivals.jsonl, then\n  \
    lanecast report smx-report.jsonl rivals.jsonl -o page.html\n\
    Exit status: 0 everything was measured, 1 error or interrupted, 2 wrong arguments, \
    3 a run failed or lost messages.")]
pub(crate) struct SmxArgs {
    /// Fewer cases, shorter, twice: less than a minute
    #[arg(long)]
    quick: bool,

    /// Only these experiments, such as size,latency
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<Experiment>,

    /// Time of each case [default: 2s, with --quick 200ms]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    time: Option<Duration>,

    /// Repetitions of the series [default: 5, with --quick 2]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: Option<u32>,

    /// CPU of the publisher [default: the one that lanecast doctor proposes]
    #[arg(long, value_name = "CPU")]
    publisher_cpu: Option<usize>,

    /// CPUs of the receivers, such as 0,2,3 [default: the proposed one, then its node's]
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    receiver_cpus: Vec<usize>,

    /// Write the figures to a file, too: .jsonl, .html, .hgrm or .hlog; can be repeated
    /// [default: smx-report.jsonl and smx-report.html]
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Vec<PathBuf>,

    /// Print the measurement lines, and nothing else
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    pub(crate) context: ContextArgs,
}

impl SmxArgs {
    fn output(&self) -> Vec<PathBuf> {
        match self.output.as_slice() {
            [] => ["smx-report.jsonl", "smx-report.html"].map(PathBuf::from).to_vec(),
            output => output.to_vec(),
        }
    }

    fn series(&self) -> Series {
        let series = if self.quick { Series::quick } else { Series::full };
        let (time, repetitions) = if self.quick { (200, 2) } else { (2000, 5) };
        let time = self.time.unwrap_or(Duration::from_millis(time));
        series(time, self.repetitions.unwrap_or(repetitions)).only(&self.only)
    }
}

pub(super) fn run(arguments: &SmxArgs, stop: &dyn Fn() -> bool) -> anyhow::Result<ExitCode> {
    arguments.context.check_outward("lanecast perf pub")?;
    let files = Files::open(&arguments.output(), Times::Several)?;
    let placement = Placement::choose(arguments.publisher_cpu, &arguments.receiver_cpus)?;
    PriorityChange::by(PriorityRequest::Auto);
    let runner = Runner::new(Head::now(), placement, &arguments.context)?;
    let mut record = Record::default();
    let mut series = arguments.series();
    if !runner.has_nodes() && series.has(Experiment::Numa) {
        series = series.without(Experiment::Numa);
        record.lines.push(runner.skipped(Experiment::Numa, "this host has one NUMA node".into())?);
    }
    let mut progress = Progress::new(series.expected());
    for turn in series.turns().take_while(|_| !stop()) {
        let Turn { step, repetition, repetitions } = &turn;
        let what = format!("{step} ({repetition}/{repetitions})");
        progress.begin(&what, step.expected());
        match runner.measure(&turn, stop) {
            Ok(measured) => record.keep(measured.line, measured.is_complete),
            Err(_) if stop() => {}
            Err(error) => {
                let why =
                    format!("{}, repetition {}: {}", turn.step, turn.repetition, words(&error));
                record.fail(runner.skipped(turn.step.experiment, why)?);
            }
        }
    }
    progress.finish();
    record.publish(arguments.json, files)?;
    if stop() {
        anyhow::bail!("interrupted: the figures so far are written");
    }
    Ok(ExitCode::from(if record.failed == 0 { 0 } else { INCOMPLETE }))
}
