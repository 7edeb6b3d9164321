//! `lanecast perf rings`: the ring-buffer table of the AMPS slides.

use super::threads::{Series, ThreadsArgs, Turn, listed, refuse};
use lanecast_base::WaitStrategy;
use lanecast_measure::rings::{self, BATCHES, Case, Layout, Row, SIZES, Seats, Settings};
use lanecast_measure::smx::Placement;
use lanecast_measure::{Kind, parse_number};
use std::process::ExitCode;
use std::time::Duration;

const SERIES: Series =
    Series { name: "rings", time: Duration::from_millis(500), quick: Duration::from_millis(100) };
/// The largest ring.
const CAPACITY_MAX: usize = 1 << 24;
/// All rings of a run together.
const BYTES_MAX: usize = 1 << 30;

/// Arguments of `perf rings`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Shows each row beside the figures of the AMPS slides, for their own ring \
    and for the LMAX Disruptor.\n\
    Rows: 1p-1c, 1p-1c-singly (taken one at a time), 1p-3c-multicast, 1p-3c-diamond, 2p-2c, \
    4p-4c.\n\
    With more threads than CPUs, threads take turns, and the result says so: split puts \
    producers on some CPUs and consumers on the others, mixed both on all of them.\n\
    Every message's content and order is checked; messages lost, repeated or changed are an \
    error.\n\
    Exit status: 0 everything was measured, 1 error, interrupted, or messages went wrong, \
    2 wrong arguments.")]
pub(crate) struct RingsArgs {
    /// Only these rows, such as 1p-1c,2p-2c
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    rows: Vec<Row>,

    /// Messages that are published together; 1 is one by one
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_values_t = [1, 64])]
    #[arg(value_parser = batch)]
    batch: Vec<usize>,

    /// Every batch of the drawings: 1, 2, 4, up to 1024
    #[arg(long, conflicts_with = "batch")]
    all_batches: bool,

    /// Length of a message in bytes: 8, 16, 32, 64, 128 or 256
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = size)]
    size: usize,

    /// Messages that a ring holds: a power of two
    #[arg(long, value_name = "COUNT", default_value_t = 65_536, value_parser = capacity)]
    capacity: usize,

    /// Wait strategy of both ends: spin, yield, spin-park or park [default: spin where each thread
    /// has a CPU, else yield]
    #[arg(long, value_name = "STRATEGY")]
    wait: Option<WaitStrategy>,

    /// CPUs of the threads: own, split or mixed [default: own if there are enough CPUs, else split
    /// for one producer, mixed for several]
    #[arg(long, value_name = "HOW")]
    placement: Option<Layout>,

    #[command(flatten)]
    threads: ThreadsArgs,
}

pub(super) fn run(arguments: &RingsArgs, stop: &dyn Fn() -> bool) -> anyhow::Result<ExitCode> {
    let cpus = Placement::cpus(&arguments.threads.cpus)?;
    let cases = match arguments.cases(&cpus) {
        Ok(cases) => cases,
        Err(why) => return Ok(refuse(&why)),
    };
    if let ([case, ..], true) = (&cases[..], arguments.threads.own_session) {
        let length = arguments.threads.length(SERIES);
        let case = case.clone();
        return arguments.threads.measure(
            Kind::Rings,
            |result: &rings::RingsResult| &result.outcome.wrong,
            |raise| Ok(rings::run(&Settings { case, length, raise })?),
        );
    }
    let turns: Vec<Turn> = cases.iter().map(|case| turn(case, &cpus)).collect();
    arguments.threads.conduct(SERIES, &turns, &[], stop)
}

impl RingsArgs {
    /// The cases to run, or the reason why the arguments make no sense.
    fn cases(&self, cpus: &[usize]) -> Result<Vec<Case>, String> {
        let batches = if self.all_batches { &BATCHES[..] } else { &self.batch };
        if let Some(batch) = batches.iter().find(|batch| **batch > self.capacity) {
            return Err(format!(
                "batches of {batch} do not fit into a ring of {}: use a larger --capacity",
                self.capacity
            ));
        }
        let turns = rings::Series::new(&self.rows, batches).turns;
        if turns.is_empty() {
            return Err("1p-1c-singly is for --batch 1 only".to_owned());
        }
        turns.into_iter().map(|turn| self.case(turn, cpus)).collect()
    }

    fn case(&self, turn: rings::Turn, cpus: &[usize]) -> Result<Case, String> {
        let rings::Turn { row, batch } = turn;
        let seats = Seats::deal(row, self.placement, cpus).map_err(|error| error.to_string())?;
        if self.capacity * self.size * row.producers() > BYTES_MAX {
            return Err(format!(
                "the rings of {row} would take more than 1 GiB: use a smaller --capacity or --size"
            ));
        }
        let usual =
            if seats.is_crowded() { WaitStrategy::SpinYield } else { WaitStrategy::BusySpin };
        let (size, capacity) = (self.size, self.capacity);
        Ok(Case { row, batch, size, capacity, wait: self.wait.unwrap_or(usual), seats })
    }
}

fn turn(case: &Case, cpus: &[usize]) -> Turn {
    let option = |name: &str, value: String| [name.to_owned(), value];
    let words = [
        option("--rows", case.row.to_string()),
        option("--batch", case.batch.to_string()),
        option("--size", case.size.to_string()),
        option("--capacity", case.capacity.to_string()),
        option("--wait", case.wait.to_string()),
        option("--placement", case.seats.layout.to_string()),
        option("--cpus", listed(cpus)),
    ];
    Turn { what: format!("{}, batches of {}", case.row, case.batch), words: words.concat() }
}

fn size(text: &str) -> Result<usize, String> {
    let size = parse_number::<u32>(text).map_err(|error| error.to_string())? as usize;
    let fits = SIZES.contains(&size);
    if fits { Ok(size) } else { Err(format!("choose of {}", listed(&SIZES))) }
}

fn capacity(text: &str) -> Result<usize, String> {
    let capacity = parse_number::<u32>(text).map_err(|error| error.to_string())? as usize;
    let fits = capacity.is_power_of_two() && (2..=CAPACITY_MAX).contains(&capacity);
    if fits { Ok(capacity) } else { Err(format!("a power of two from 2 to {CAPACITY_MAX}")) }
}

/// A batch; also those of pipes.
pub(super) fn batch(text: &str) -> Result<usize, String> {
    const MOST: usize = 65_536;
    match parse_number::<u32>(text).map_err(|error| error.to_string())? as usize {
        batch @ 1..=MOST => Ok(batch),
        _ => Err(format!("a batch has between 1 and {MOST} messages")),
    }
}
