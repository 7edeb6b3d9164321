//! `lanecast perf fanout`: the fan-out charts of the AMPS slides.

mod cpu;
mod server;

use super::priority;
use super::progress::Progress;
use crate::child::{ChildProcess, Deadline};
use crate::output::{INCOMPLETE, print, print_line, warn};
use crate::table::{rate, render};
use crate::usage::refuse;
use anyhow::bail;
use cpu::cpu_of;
use lanecast_measure::fanout::{self, Bursts, FanoutResult, Load, Wanted};
use lanecast_measure::{Head, Kind, PriorityChange, PriorityRequest, parse_number};
use lanecast_measure::{Numa, NumaPlacement};
use lanecast_os::topology::Topology;
use lanecast_report::TextTable;
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Expected time of a run, and its limit.
const EXPECTED: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(300);
/// Server, publishers, subscribers.
const SEATS: usize = 3;

/// Arguments of `perf fanout`.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Publishers send bursts of FIX orders; each of 50 subscribers has a filter. \
    Through the server: it has a process of its own, and is reached over TCP on loopback; \
    publishers and subscribers are threads of another process, and use bare sockets. Embedded: \
    publishers match for themselves, and hand messages to the subscribers' thread through a ring.\n\
    Times from sending until arrival are those within a full burst. The server's own times are \
    from when it takes a message up until its frames are written for all who want it.\n\
    Exit status: 0 everything was measured, 1 error or interrupted, 2 wrong arguments, \
    3 messages were lost."
)]
pub(crate) struct FanoutArgs {
    /// Through a server process, or embedded in the publishers
    #[arg(long, value_name = "HOW", value_delimiter = ',')]
    #[arg(default_values_t = [Through::Server, Through::Embedded])]
    through: Vec<Through>,

    /// Messages each subscriber wants: all, or quarter (a quarter of the messages, one subscriber
    /// for each)
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    #[arg(default_values_t = [Wanted::All, Wanted::Quarter])]
    wanted: Vec<Wanted>,

    /// Number of publishers
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_values_t = [1, 5])]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    publishers: Vec<u16>,

    /// Number of subscribers
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=500))]
    subscribers: u16,

    /// Messages of a burst, all publishers' together
    #[arg(long, value_name = "COUNT", default_value = "100000", value_parser = burst)]
    burst: u64,

    /// Number of bursts, one after the other
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
    bursts: u16,

    /// Number of repetitions
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1_000))]
    repetitions: u16,

    /// Threads and their memory by NUMA node: auto (all on one node), off, or a node's number
    #[arg(long, value_name = "HOW", default_value_t = Numa::Auto)]
    numa: Numa,

    /// Print the measurement lines, and nothing else
    #[arg(long)]
    json: bool,

    /// Measure in this process, once: what each repetition does in a process of its own
    #[arg(long, hide = true)]
    own_session: bool,

    /// Be the server of a run, on this CPU unless it is negative
    #[arg(long, hide = true, allow_negative_numbers = true)]
    serve: Option<i64>,
}

/// Path between publishers and subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Through {
    Server,
    Embedded,
}

/// One run, as its line has it.
#[derive(Debug, Serialize)]
struct Measured {
    #[serde(flatten)]
    result: FanoutResult,
    numa: String,
    numa_placement: NumaPlacement,
    /// The server's own figures.
    server: Option<server::ServerReport>,
    raise: PriorityChange,
}

pub(super) fn run(arguments: &FanoutArgs, stop: &dyn Fn() -> bool) -> anyhow::Result<ExitCode> {
    if let Some(cpu) = arguments.serve {
        return server::serve(usize::try_from(cpu).ok(), stop);
    }
    let topology = Topology::of_this_host();
    let placement = match NumaPlacement::choose(&topology, arguments.numa, SEATS) {
        Ok(placement) => placement,
        Err(error) => {
            warn(&error.to_string());
            return Ok(ExitCode::from(2));
        }
    };
    if arguments.own_session {
        return arguments.measure(placement, stop);
    }
    arguments.conduct(&placement, stop)
}

impl FanoutArgs {
    /// The one case that is asked for, in this process.
    fn measure(
        &self,
        placement: NumaPlacement,
        stop: &dyn Fn() -> bool,
    ) -> anyhow::Result<ExitCode> {
        let head = Head::now();
        priority::leave_session()?;
        let raise = PriorityChange::by(PriorityRequest::Auto);
        let ([through, ..], [wanted, ..], [publishers, ..]) =
            (&self.through[..], &self.wanted[..], &self.publishers[..])
        else {
            refuse!("--own-session measures one case");
        };
        let load = Load { wanted: *wanted, subscribers: self.subscribers.into() };
        let (publishers, count) = (usize::from(*publishers), usize::from(self.bursts));
        let bursts = Bursts { publishers, count, messages: self.burst };
        let (result, server) = match through {
            Through::Server => server::run(&load, bursts, &placement, stop)?,
            Through::Embedded => {
                let cpus = [0, 1].map(|number| cpu_of(&placement, number));
                (fanout::embedded(&load, bursts, [cpus[0].as_slice(), cpus[1].as_slice()])?, None)
            }
        };
        let measured = Measured {
            result,
            numa: self.numa.to_string(),
            numa_placement: placement,
            server,
            raise,
        };
        print_line(&head.line(Kind::Fanout, &measured)?)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Everything, each in a process of its own, again and again.
    fn conduct(
        &self,
        placement: &NumaPlacement,
        stop: &dyn Fn() -> bool,
    ) -> anyhow::Result<ExitCode> {
        let command = Head::now().command;
        let cases = self.cases();
        let rounds = u32::from(self.repetitions) * cases.len() as u32;
        let mut progress = Progress::new(EXPECTED * rounds);
        let (mut lines, mut has_lost): (Vec<Value>, bool) = (Vec::new(), false);
        for repetition in 1..=self.repetitions {
            for (what, words) in &cases {
                if stop() {
                    bail!("interrupted");
                }
                progress.begin(&format!("{what} ({repetition}/{})", self.repetitions), EXPECTED);
                let deadline = Deadline { until: Instant::now() + PATIENCE, stop };
                let mut actor = ChildProcess::start("measuring process", words)?;
                let mut line: Value = actor.read(&deadline)?;
                actor.finish(&deadline)?;
                line["command"] = command.clone().into();
                line["repetition"] = repetition.into();
                has_lost |= line["lost"] != 0 || line["excess"] != 0;
                if self.json {
                    print_line(&line.to_string())?;
                }
                lines.push(line);
            }
        }
        progress.finish();
        if !self.json {
            print(&shown(&lines, placement))?;
        }
        Ok(ExitCode::from(if has_lost { INCOMPLETE } else { 0 }))
    }

    /// The runs: a title and the arguments of each.
    fn cases(&self) -> Vec<(String, Vec<String>)> {
        let mut cases = Vec::new();
        for publishers in &self.publishers {
            for wanted in &self.wanted {
                for through in &self.through {
                    let options = [
                        ("--through", through.to_string()),
                        ("--wanted", wanted.to_string()),
                        ("--publishers", publishers.to_string()),
                        ("--subscribers", self.subscribers.to_string()),
                        ("--burst", self.burst.to_string()),
                        ("--bursts", self.bursts.to_string()),
                        ("--numa", self.numa.to_string()),
                    ];
                    let fixed = ["perf", "fanout", "--own-session"].map(str::to_owned);
                    let options =
                        options.into_iter().flat_map(|(name, value)| [name.into(), value]);
                    let what = format!("{publishers} → {}, {wanted}, {through}", self.subscribers);
                    cases.push((what, fixed.into_iter().chain(options).collect()));
                }
            }
        }
        cases
    }
}

/// The runs as a table.
fn shown(lines: &[Value], placement: &NumaPlacement) -> String {
    let mut table = TextTable::new(&[
        ">publishers",
        "wanted",
        "through",
        ">published",
        ">delivered",
        ">lost",
        ">p50",
        ">p99",
        ">timed",
        ">server p50",
        ">server p99",
    ]);
    for line in lines {
        let time = |value: &Value| {
            value.as_u64().map_or("-".to_owned(), |ns| format!("{:.2} µs", ns as f64 / 1e3))
        };
        let text = |name: &str| line[name].to_string().trim_matches('"').to_owned();
        let per_second = |name: &str| rate(line[name].as_f64().unwrap_or(0.0));
        let (latency, server) = (&line["latency"], &line["server"]["command_latency"]);
        table.row([
            text("publishers"),
            text("wanted"),
            text("through"),
            per_second("published_per_second"),
            per_second("delivered_per_second"),
            text("lost"),
            time(&latency["p50_ns"]),
            time(&latency["p99_ns"]),
            latency["samples"].to_string(),
            time(&server["p50_ns"]),
            time(&server["p99_ns"]),
        ]);
    }
    format!("{}\nPlacement: {}\n", render(&table), placement.why)
}

fn burst(text: &str) -> Result<u64, String> {
    match parse_number::<u64>(text).map_err(|error| error.to_string())? {
        count @ 1..=100_000_000 => Ok(count),
        _ => Err("a burst has between 1 and 100000000 messages".to_owned()),
    }
}

impl FromStr for Through {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "server" => Ok(Self::Server),
            "embedded" => Ok(Self::Embedded),
            _ => Err("choose of server, embedded".to_owned()),
        }
    }
}

impl fmt::Display for Through {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Server => "server",
            Self::Embedded => "embedded",
        })
    }
}
