//! `lanecast perf pipes`: the experiments of the Y-suite document.

use super::rings::batch;
use super::threads::{Series, ThreadsArgs, Turn, listed, refuse};
use lanecast_base::WaitStrategy;
use lanecast_measure::Kind;
use lanecast_measure::pipes::{
    self, Case, Experiment, QUICK_BATCHES, Seats, Settings, Transport, Wanted,
};
use lanecast_measure::smx::Placement;
use std::process::ExitCode;
use std::time::Duration;

const SERIES: Series =
    Series { name: "pipes", time: Duration::from_millis(200), quick: Duration::from_millis(60) };

/// Arguments of `perf pipes`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Shows each case beside local sockets, which run in turns with it, and \
    beside the Y-suite document's figures.\n\
    Experiments: ping-pong (one message goes there and back), throughput.\n\
    Transports: socketpair, pollset (with polling), semaphore (without polling), socket-signal.\n\
    The document's readers sleep whenever there is nothing (--wait park); that is measured for \
    every transport, other ways of waiting for the semaphore.\n\
    Every message's content and order is checked; messages lost, repeated or changed are an \
    error.\n\
    Exit status: 0 everything was measured, 1 error, interrupted, or messages went wrong, \
    2 wrong arguments.")]
pub(crate) struct PipesArgs {
    /// Only these experiments, such as ping-pong
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<Experiment>,

    /// Only these transports, such as socketpair,semaphore
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    transports: Vec<Transport>,

    /// Only readers that wait so, with every transport but sockets: spin, yield, spin-park, park
    #[arg(long, value_name = "STRATEGIES", value_delimiter = ',')]
    wait: Vec<WaitStrategy>,

    /// Only with so many CPUs for the two threads: two or one
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    on: Vec<Seats>,

    /// Messages that are flushed together [default: 1, 2, 4, up to 1024; fewer with --quick]
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', value_parser = batch)]
    batch: Vec<usize>,

    #[command(flatten)]
    threads: ThreadsArgs,
}

pub(super) fn run(arguments: &PipesArgs, stop: &dyn Fn() -> bool) -> anyhow::Result<ExitCode> {
    let threads = &arguments.threads;
    let cpus = Placement::cpus(&threads.cpus)?;
    let mut cases = pipes::Series::new(&arguments.wanted()).cases;
    let mut left_out = Vec::new();
    if cpus.len() < 2 && cases.iter().any(|case| case.seats == Seats::Two) {
        cases.retain(|case| case.seats == Seats::One);
        left_out.push("there is one CPU only: nothing on two".to_owned());
    }
    if cases.is_empty() {
        return Ok(refuse(
            "nothing is left to measure: ask for fewer restrictions (--on two needs two --cpus)",
        ));
    }
    if let ([case, ..], true) = (&cases[..], threads.own_session) {
        let settings = |raise| Settings {
            case: *case,
            length: threads.length(SERIES),
            producer_cpu: cpus[0],
            consumer_cpu: if case.seats == Seats::One { cpus[0] } else { cpus[1] },
            raise,
        };
        return threads.measure(
            Kind::Pipes,
            |result: &pipes::PipesResult| &result.outcome.wrong,
            |raise| Ok(pipes::run(&settings(raise))?),
        );
    }
    let turns: Vec<Turn> = cases.iter().map(|case| turn(case, &cpus)).collect();
    threads.conduct(SERIES, &turns, &left_out, stop)
}

impl PipesArgs {
    fn wanted(&self) -> Wanted {
        let quick = if self.threads.quick { QUICK_BATCHES.to_vec() } else { Vec::new() };
        Wanted {
            experiments: self.only.clone(),
            transports: self.transports.clone(),
            waits: self.wait.clone(),
            seats: self.on.clone(),
            batches: if self.batch.is_empty() { quick } else { self.batch.clone() },
        }
    }
}

fn turn(case: &Case, cpus: &[usize]) -> Turn {
    let option = |name: &str, value: String| [name.to_owned(), value];
    let words = [
        option("--only", case.experiment.to_string()),
        option("--transports", case.transport.to_string()),
        option("--wait", case.wait.to_string()),
        option("--on", case.seats.to_string()),
        option("--batch", case.batch.to_string()),
        option("--cpus", listed(cpus)),
    ];
    Turn { what: case.to_string(), words: words.concat() }
}
