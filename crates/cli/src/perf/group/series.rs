//! `lanecast perf group-report`: the document's matrix of members, sizes and transports.

use super::arguments::HostArgs;
use super::local::measure;
use crate::output::{INCOMPLETE, warn, words};
use crate::perf::files::{Files, Times};
use crate::perf::progress::Progress;
use crate::perf::record::Record;
use crate::usage::refuse;
use anyhow::bail;
use lanecast_measure::group::{GroupConfig, TransportKind};
use lanecast_measure::{Head, Kind, parse_number};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Messages of each sender: the document's, and those of a short series.
const DOCUMENTED: u64 = 1_000_000;
const QUICK: u64 = 20_000;
/// A guess of the rate, for the bar.
const EXPECTED_RATE: u64 = 100_000;
const OVERHEAD: Duration = Duration::from_secs(2);

/// Arguments of `perf group-report`.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Runs perf group --local for each number of members, size and transport, all \
    members senders, and shows rates and throughput of each node and of the cluster beside the \
    document's figures. Those are of 2008: a host for each member, 1 Gbit Ethernet, JGroups 2.6.4; \
    members here \
    share the CPUs of one machine, so the figures stand beside and do not compare by themselves.\n\
    Exit status: 0 everything was measured, 1 error or interrupted, 2 wrong arguments, \
    3 a run failed or lost messages, as bare udp does."
)]
pub(crate) struct SeriesArgs {
    /// Fewer messages: 20000
    #[arg(long)]
    quick: bool,

    /// Numbers of members
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', default_values_t = [4, 6, 8, 10])]
    #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    members: Vec<usize>,

    /// Bytes of each message
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = [1000, 2500, 5000])]
    #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(24..=1 << 24))]
    sizes: Vec<usize>,

    /// Transports, such as udp,tcp
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(default_values_t = [TransportKind::Udp, TransportKind::Tcp])]
    transports: Vec<TransportKind>,

    /// Messages of each sender [default: 1000000, with --quick 20000]
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = parse_number::<u64>)]
    messages: Option<u64>,

    /// Repetitions of the series
    #[arg(long, value_name = "COUNT", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: u32,

    #[command(flatten)]
    hosts: HostArgs,

    /// Write the figures to a file, too: .jsonl, .html or .txt; can be repeated
    /// [default: group-report.jsonl and group-report.html]
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Vec<PathBuf>,

    /// Print the measurement lines, and nothing else
    #[arg(long)]
    json: bool,
}

impl SeriesArgs {
    fn output(&self) -> Vec<PathBuf> {
        match self.output.as_slice() {
            [] => ["group-report.jsonl", "group-report.html"].map(PathBuf::from).to_vec(),
            output => output.to_vec(),
        }
    }

    fn messages(&self) -> u64 {
        self.messages.unwrap_or(if self.quick { QUICK } else { DOCUMENTED })
    }

    /// Settings of each case, transports innermost: what is compared runs one after the other.
    fn cases(&self) -> Vec<Vec<String>> {
        let mut cases = Vec::new();
        for members in &self.members {
            for size in &self.sizes {
                for transport in &self.transports {
                    cases.push(vec![
                        format!("transport={transport}"),
                        format!("num_members={members}"),
                        format!("msg_size={size}"),
                        format!("num_msgs={}", self.messages()),
                    ]);
                }
            }
        }
        cases
    }
}

/// Runs all cases, and writes the report.
pub(super) fn run(arguments: &SeriesArgs, stop: &dyn Fn() -> bool) -> anyhow::Result<ExitCode> {
    let files = Files::open(&arguments.output(), Times::None("a group test has no latencies"))?;
    let (head, cases, mut record) = (Head::now(), arguments.cases(), Record::default());
    let expected = |config: &GroupConfig| {
        let deliveries = config.expected().saturating_mul(config.num_members as u64);
        OVERHEAD + Duration::from_secs(deliveries / EXPECTED_RATE)
    };
    let configs = cases.iter().map(|case| GroupConfig::read("the series", "", case, None));
    let configs: Vec<GroupConfig> = configs.collect::<Result<_, _>>()?;
    if arguments.transports.contains(&TransportKind::GroupThreads) {
        refuse!("group-threads is no process of its own: use perf group --local");
    }
    let total: Duration = configs.iter().map(expected).sum();
    let mut progress = Progress::new(total.saturating_mul(arguments.repetitions));
    let mtu = arguments.hosts.namespaces.then_some(arguments.hosts.mtu);
    let all = (1..=arguments.repetitions)
        .flat_map(|repetition| cases.iter().zip(&configs).map(move |case| (repetition, case)));
    for (repetition, (case, config)) in all.take_while(|_| !stop()) {
        let what = format!("{config} ({repetition}/{})", arguments.repetitions);
        progress.begin(&what, expected(config));
        match measure(config, case, mtu, stop) {
            Ok(mut line) => {
                line["command"] = head.command.clone().into();
                line["repetition"] = repetition.into();
                line["repetitions"] = arguments.repetitions.into();
                let is_complete = line["complete"] == true;
                record.keep(line.to_string(), is_complete);
            }
            Err(_) if stop() => {}
            Err(error) => {
                let why = format!("{what}: {}", words(&error));
                warn(&why);
                let skipped = json!({"experiment": "group", "why": why});
                record.fail(head.line(Kind::Skipped, &skipped)?);
            }
        }
    }
    progress.finish();
    record.publish(arguments.json, files)?;
    if stop() {
        bail!("interrupted: the figures so far are written");
    }
    Ok(ExitCode::from(if record.failed == 0 { 0 } else { INCOMPLETE }))
}
