//! Arguments of `lanecast perf persist-report`.

use crate::context::DomainArgs;
use crate::perf::arguments::{Warmup, warmup};
use crate::perf::files::Times;
use crate::perf::persistence;
use crate::perf::transport_name::TransportName;
use crate::usage::refuse;
use lanecast::PersistenceSettings;
use lanecast_base::{Size, WaitStrategy};
use lanecast_measure::persistent::{PERSIST_SIZE, PersistMode};
use lanecast_measure::ping::DOCUMENT_RATE;
use lanecast_measure::publisher::is_flat_out;
use lanecast_measure::record::STAMPED;
use lanecast_measure::smx::Placement;
use lanecast_measure::{expected_time, parse_number};
use std::path::PathBuf;
use std::time::Duration;

const MESSAGES: u64 = 1_000_000;
/// Messages of a short series: enough that the last ones, which are waited for until they are
/// consumed, count little.
const QUICK: u64 = 200_000;
/// Starting the processes, and ending them.
const OVERHEAD: Duration = Duration::from_secs(3);
/// A rate that is expected of most tests, to guess how long they take.
const GUESS: f64 = 200_000.0;

/// Arguments of `perf persist-report`. Numbers are decimal, or hexadecimal after 0x.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Runs perf pub and perf sub flat out, with messages of 700 bytes, as the series \
    of the UM throughput document does: streaming, one source-paced store (SPP), one \
    receiver-paced store (RPP), three of them in quorum, three topics with a store each. Stores \
    are processes that it starts itself, with their data in a directory that is removed; name one \
    on the disk in question with --data.\n\
    The ceiling is what a bare program appends to a file there, with an fdatasync after each \
    flight, in the same run: persistence.flight_messages, and no more than persistence.flight \
    bytes; through the page cache or past it, the faster counts. One source-paced store is asked \
    to reach 80 per cent of it; one receiver-paced store 90, three in quorum 45 per cent of \
    that.\n\
    Then the live path at a fixed rate, without a store and with a source-paced one beside it, \
    by turns first: one-way latency from the intended time of sending, with publisher and \
    subscriber on the same CPUs in both. p50 is asked to stay within 1.05 times, p99 within 1.2 \
    times of those without. With two CPUs the store shares theirs.\n\
    Exit status: 0 everything was measured, 1 error or interrupted, 2 wrong arguments, \
    3 a run failed or lost messages."
)]
pub(crate) struct PersistReportArgs {
    /// Fewer messages: 200000
    #[arg(long)]
    quick: bool,

    /// Only these tests: rates (flat out) or latency (the live path) [default: both]
    #[arg(long, value_enum, value_name = "TESTS")]
    only: Option<PersistTests>,

    /// Length of each message in bytes
    #[arg(short = 'm', long = "size", value_name = "BYTES", default_value_t = PERSIST_SIZE)]
    #[arg(value_parser = parse_number::<usize>)]
    pub(super) size: usize,

    /// Messages of each test [default: 1000000, with --quick 200000]
    #[arg(short = 'n', long = "messages", value_name = "COUNT", value_parser = parse_number::<u64>)]
    messages: Option<u64>,

    /// Messages a second of the live path
    #[arg(short = 'r', long, value_name = "RATE", default_value_t = DOCUMENT_RATE)]
    #[arg(value_parser = parse_number::<u64>)]
    pub(super) rate: u64,

    /// CPUs of the live path: the publisher's, the subscriber's, and the store's if it is to have
    /// one of its own [default: what lanecast doctor proposes; the store's is the third, if there
    /// is one]
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    cpus: Vec<usize>,

    /// Warm-up: number of messages, and messages per second
    #[arg(short = 'w', long, value_name = "LOOPS,RATE", default_value = "15,15")]
    #[arg(value_parser = warmup)]
    pub(super) warmup: Warmup,

    /// Repetitions of the series: one gives ratios without a range
    #[arg(long, value_name = "COUNT", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) repetitions: u32,

    /// Directory for the stores' data; what is made in it is removed [default: that of temporary
    /// files]
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,

    /// Transport of the messages
    #[arg(long, value_enum, default_value = "shm")]
    pub(super) transport: TransportName,

    /// Wait strategy of all threads [default: as configured]
    #[arg(long, value_name = "STRATEGY")]
    pub(super) wait: Option<WaitStrategy>,

    /// Configuration file of all processes; can be repeated
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    pub(super) config: Vec<PathBuf>,

    /// Network interface of rm, ru and tcp [default: 127.0.0.1]
    #[arg(long, value_name = "INTERFACE")]
    pub(super) interface: Option<String>,

    /// Size of the publishers' windows, such as 4MiB
    #[arg(long, value_name = "SIZE")]
    pub(super) window: Option<Size>,

    /// Write the figures to a file, too: .jsonl, .html or .txt; can be repeated
    /// [default: persist-report.jsonl and persist-report.html]
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    output: Vec<PathBuf>,

    /// Print the measurement lines, and nothing else
    #[arg(long)]
    pub(super) json: bool,
}

/// Tests of the series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum PersistTests {
    /// Rates, flat out.
    Rates,
    /// Latency of the live path at a fixed rate.
    Latency,
}

impl PersistReportArgs {
    /// Whether `tests` are asked for.
    pub(super) fn wants(&self, tests: PersistTests) -> bool {
        self.only.is_none_or(|only| only == tests)
    }

    /// CPUs of the live path, if it is asked for.
    ///
    /// # Errors
    /// If one that was asked for is not there.
    pub(super) fn cpus(&self) -> anyhow::Result<LiveCpus> {
        if !self.wants(PersistTests::Latency) {
            return Ok(LiveCpus::default());
        }
        let cpus = Placement::cpus(&self.cpus)?;
        let at = |index: usize| cpus.get(index).copied();
        Ok(LiveCpus { publisher: at(0), subscriber: at(1).or(at(0)), store: at(2) })
    }

    /// Files have one place for times at the most, and only the live path has any.
    pub(super) fn times(&self) -> Times {
        if self.wants(PersistTests::Latency) {
            Times::Several
        } else {
            Times::None("rates have no times: use .jsonl")
        }
    }

    pub(super) fn output(&self) -> Vec<PathBuf> {
        match self.output.as_slice() {
            [] => ["persist-report.jsonl", "persist-report.html"].map(PathBuf::from).to_vec(),
            output => output.to_vec(),
        }
    }

    pub(super) fn messages(&self) -> u64 {
        self.messages.unwrap_or(if self.quick { QUICK } else { MESSAGES })
    }

    /// Messages of a flight of source-paced publishers, by number and by bytes.
    ///
    /// # Errors
    /// If the configuration is wrong, or has no room for one message.
    pub(super) fn flight(&self) -> anyhow::Result<usize> {
        let domain = DomainArgs { config: self.config.clone(), directory: None };
        let application = persistence::application(Some(PersistMode::Source));
        let config = domain.builder()?.um_application(application).config()?;
        let PersistenceSettings { flight_messages, flight_bytes, .. } = config.persistence;
        if self.size > flight_bytes {
            refuse!("-m {}: raise persistence.flight, which is {flight_bytes} bytes", self.size);
        }
        Ok(flight_messages.min(flight_bytes / self.size.max(1)).max(1))
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        if self.messages() == 0 || self.size == 0 {
            refuse!("-n 0 and -m 0 measure nothing: take 1 or more");
        }
        if self.warmup.loops > 0 && self.warmup.rate == 0 {
            refuse!("-w {},0 has no rate: write loops,rate such as 15,15", self.warmup.loops);
        }
        if self.wants(PersistTests::Latency) {
            if is_flat_out(self.rate) {
                refuse!("-r {}: latency needs a rate; --only rates leaves it out", self.rate);
            }
            if self.size < STAMPED {
                refuse!(
                    "-m {} has no room for times: take -m {STAMPED} or more, or --only rates",
                    self.size
                );
            }
        }
        if self.transport == TransportName::Thread {
            refuse!(
                "--transport thread has no room for stores, which are other processes: use shm"
            );
        }
        if let Some(data) = self.data.as_ref().filter(|data| !data.is_dir()) {
            refuse!("--data {}: no such directory", data.display());
        }
        Ok(())
    }

    /// Expected time of one test at `rate`, or flat out.
    pub(super) fn expected(&self, rate: Option<u64>) -> Duration {
        let warmup = expected_time(self.warmup.loops, self.warmup.rate.max(1) as f64);
        let rate = rate.map_or(GUESS, |rate| rate as f64);
        OVERHEAD + warmup + expected_time(self.messages(), rate)
    }
}

/// CPUs of the live path; none leaves threads to the system.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LiveCpus {
    pub(super) publisher: Option<usize>,
    pub(super) subscriber: Option<usize>,
    pub(super) store: Option<usize>,
}
