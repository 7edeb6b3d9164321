//! `lanecast perf floor`: what the system's own sockets can do on this machine.

use super::arguments::parse_cpu;
use super::files::{FilesArgs, Times};
use super::priority::PriorityArgs;
use super::progress::Progress;
use super::record::Record;
use crate::output::{INCOMPLETE, warn};
use lanecast_base::clock::Clock;
use lanecast_base::parse_duration;
use lanecast_measure::socket_baseline::{
    self, Case, Experiment, Settings, SocketBaselineError, SocketKind,
};
use lanecast_measure::{Head, Kind, Pinning, PriorityChange, expected_time, parse_number};
use std::process::ExitCode;
use std::time::Duration;

/// The CPUs of the two threads, unless others are asked for.
const SEND_CPU: usize = 1;
const RECEIVE_CPU: usize = 0;
/// The longest that each case can be asked to send one way.
const LONGEST: Duration = Duration::from_secs(600);

/// Arguments of `perf floor`. Numbers are decimal, or hexadecimal after 0x.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Two threads of this process use bare sockets over the loopback interface: \
    round trips on a schedule, with receivers that spin and that sleep, and then one way as fast \
    as it goes without loss: a datagram for each message (singly), several packed datagrams with \
    one call (several), packed datagrams that the system cuts (segments, where it can), and for \
    TCP many messages with one write (gathered). No card and no cable is in the way, and no \
    protocol: nothing over these sockets can be faster.\n\
    Exit status: 0 all was measured, 1 error or interrupted, 2 wrong arguments, \
    3 messages were lost."
)]
pub(crate) struct FloorArgs {
    /// CPU of the sending thread; -1 for any [default: 1, if there is one]
    #[arg(short = 'A', long, value_name = "CPU", value_parser = parse_cpu)]
    #[arg(allow_negative_numbers = true)]
    send_cpu: Option<i64>,

    /// CPU of the receiving thread; -1 for any [default: 0]
    #[arg(short = 'a', long, value_name = "CPU", value_parser = parse_cpu)]
    #[arg(allow_negative_numbers = true)]
    receive_cpu: Option<i64>,

    /// Length of each message in bytes; 16 or more
    #[arg(short = 'm', long = "size", value_name = "BYTES", default_value = "24")]
    #[arg(value_parser = parse_number::<usize>)]
    size: usize,

    /// Round trips to measure
    #[arg(short = 'n', long = "messages", value_name = "COUNT", default_value = "50000")]
    #[arg(value_parser = parse_number::<u64>)]
    messages: u64,

    /// Round trips a second
    #[arg(short = 'r', long, value_name = "RATE", default_value = "50000")]
    #[arg(value_parser = parse_number::<u64>)]
    rate: u64,

    /// Round trips of the warm-up
    #[arg(short = 'w', long, value_name = "COUNT", default_value = "1000")]
    #[arg(value_parser = parse_number::<u64>)]
    warmup: u64,

    /// Time of sending one way, in each case
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = time)]
    time: Duration,

    /// Length of a datagram that messages are packed into, in bytes
    #[arg(long, value_name = "BYTES", default_value = "1472", value_parser = parse_number::<usize>)]
    datagram: usize,

    /// Only these, such as udp,tcp [default: udp,multicast,tcp]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<SocketKind>,

    /// Only round trips
    #[arg(long)]
    round_trips: bool,

    /// Print the measurement lines, and nothing else
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    files: FilesArgs,

    #[command(flatten)]
    priority: PriorityArgs,
}

fn time(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(time) if !time.is_zero() && time <= LONGEST => Ok(time),
        Ok(_) => Err(format!("'{text}' is not between 1us and 10min")),
        Err(error) => Err(error.to_string()),
    }
}

impl FloorArgs {
    fn settings(&self, case: Case, raise: PriorityChange) -> anyhow::Result<Settings> {
        Ok(Settings {
            case,
            size: self.size,
            rate: self.rate,
            messages: self.messages,
            warmup: self.warmup,
            time: self.time,
            datagram_bytes: self.datagram,
            sender: Pinning::on_this_host(self.send_cpu, SEND_CPU)?,
            receiver: Pinning::on_this_host(self.receive_cpu, RECEIVE_CPU)?,
            raise,
            clock: Clock::host(),
        })
    }

    fn cases(&self) -> Vec<Case> {
        let wanted = |socket: &SocketKind| self.only.is_empty() || self.only.contains(socket);
        let sockets = SocketKind::ALL.into_iter().filter(wanted);
        let mut cases: Vec<Case> = sockets.flat_map(Case::all).collect();
        cases.retain(|case| !self.round_trips || case.experiment == Experiment::RoundTrip);
        cases
    }

    /// Expected time of `case`.
    fn expected(&self, case: &Case) -> Duration {
        match case.experiment {
            Experiment::RoundTrip => {
                let messages = self.messages.saturating_add(self.warmup);
                expected_time(messages, self.rate.max(1) as f64)
            }
            Experiment::OneWay => self.time,
        }
    }
}

pub(super) fn run(arguments: &FloorArgs, stop: &dyn Fn() -> bool) -> anyhow::Result<ExitCode> {
    let cases = arguments.cases();
    let files = arguments.files.open(Times::Several)?;
    let head = Head::now();
    let raise = arguments.priority.apply()?;
    let mut record = Record::default();
    let mut progress = Progress::new(cases.iter().map(|case| arguments.expected(case)).sum());
    for case in &cases {
        progress.begin(&case.to_string(), arguments.expected(case));
        match socket_baseline::run(&arguments.settings(*case, raise)?, stop) {
            Ok(result) => {
                record.keep(head.line(Kind::Baseline, &result)?, result.is_complete());
                if !result.is_complete() {
                    warn(&format!("{case}: {} messages were lost", result.lost));
                }
            }
            Err(SocketBaselineError::Stopped) => break,
            Err(error) => return Err(error.into()),
        }
    }
    progress.finish();
    record.publish(arguments.json, files)?;
    if stop() {
        anyhow::bail!("interrupted: the figures so far are written");
    }
    Ok(ExitCode::from(if record.failed == 0 { 0 } else { INCOMPLETE }))
}
