//! Arguments of `lanecast perf lat-report`, and the runs that they ask for.

use super::lat_run::{LatRun, Target, VethPath};
use crate::perf::arguments::{Warmup, warmup};
use crate::perf::transport_name::TransportName;
use crate::usage::refuse;
use clap::ValueEnum;
use lanecast_base::{Size, WaitStrategy, parse_duration};
use lanecast_measure::persistent::PersistMode;
use lanecast_measure::ping::{DOCUMENT_MESSAGES, DOCUMENT_RATE, DOCUMENT_SIZE};
use lanecast_measure::socket_baseline::SocketKind;
use lanecast_measure::{LinearShape, expected_time, parse_number};
use std::path::PathBuf;
use std::time::Duration;

/// Messages of a short series.
const QUICK: u64 = 25_000;
/// The document's threads spin; what sleeps is measured beside them.
const WAITS: [WaitStrategy; 2] = [WaitStrategy::BusySpin, WaitStrategy::Park];
/// Fewest threads of a run: those of the ping and the pong.
const SPINNING: usize = 2;
/// Starting two processes, and ending them.
const OVERHEAD: Duration = Duration::from_secs(1);

/// Arguments of `perf lat-report`. Numbers are decimal, or hexadecimal after 0x.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Runs perf ping and perf pong over each transport, with the document's load \
    (24 bytes, 50000 a second, 500000 messages, warm-up 5,5) and its spinning threads, then with \
    threads that sleep; before them the same load, round trips over bare sockets (see perf \
    floor), by processes with the same CPUs and priority. \
    The whole series takes about six minutes, --quick one and a half.\n\
    Over shared memory the same follows with a store that keeps the messages, source-paced (SPP) \
    and receiver-paced (RPP): the store is beside the path, so the rows show what it costs. \
    Threads that spin leave it no CPU if there are only two.\n\
    Rm and ru follow once more between two network namespaces with a cable between them (veth), \
    by sockets and past the kernel's network stack (AF_XDP, kernel bypass), beside bare ones: \
    these rows need root, and are left out without it.\n\
    The document's ping has two hot threads, and its pong one more. With fewer than three CPUs, \
    one thread sends and receives here. Its figures are of two hosts with cards and a cable: they \
    stand beside, and do not compare by themselves.\n\
    Exit status: 0 everything was measured, 1 error or interrupted, 2 wrong arguments, \
    3 a run failed or lost messages."
)]
pub(crate) struct LatArgs {
    /// Fewer messages: 25000
    #[arg(long)]
    pub(super) quick: bool,

    /// Only these transports, such as thread,ru [default: all]
    #[arg(long, value_name = "NAMES", value_enum, value_delimiter = ',')]
    pub(super) transports: Vec<TransportName>,

    /// Only threads that wait so, such as spin [default: spin,park]
    #[arg(long, value_name = "STRATEGIES", value_delimiter = ',')]
    pub(super) wait: Vec<WaitStrategy>,

    /// Length of each message in bytes
    #[arg(short = 'm', long = "size", value_name = "BYTES", default_value_t = DOCUMENT_SIZE)]
    #[arg(value_parser = parse_number::<usize>)]
    pub(super) size: usize,

    /// Messages to measure, over each transport [default: 500000, with --quick 25000]
    #[arg(short = 'n', long = "messages", value_name = "COUNT", value_parser = parse_number::<u64>)]
    pub(super) messages: Option<u64>,

    /// Messages a second
    #[arg(short = 'r', long, value_name = "RATE", default_value_t = DOCUMENT_RATE)]
    #[arg(value_parser = parse_number::<u64>)]
    pub(super) rate: u64,

    /// Warm-up: number of messages, and messages per second
    #[arg(short = 'w', long, value_name = "LOOPS,RATE", default_value = "5,5")]
    #[arg(value_parser = warmup)]
    pub(super) warmup: Warmup,

    /// The linear histogram: how many buckets, and how wide
    #[arg(short = 'H', long, value_name = "BUCKETS,NS_PER_BUCKET", default_value = "300,1000")]
    pub(super) histogram: LinearShape,

    /// Repetitions of the series
    #[arg(long, value_name = "COUNT", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) repetitions: u32,

    /// Leave out the bare sockets
    #[arg(long)]
    pub(super) no_floor: bool,

    /// Leave out messages that a store keeps
    #[arg(long)]
    pub(super) no_store: bool,

    /// Directory for the store's data, on the disk in question; what is made in it is removed
    /// [default: that of temporary files]
    #[arg(long, value_name = "DIR")]
    pub(super) store_data: Option<PathBuf>,

    /// CPUs: the ping's sender, the pong, the ping's receiver if it has a thread of its own
    /// [default: what lanecast doctor proposes]
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    pub(super) cpus: Vec<usize>,

    /// Configuration file of both sides; can be repeated
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    pub(super) config: Vec<PathBuf>,

    /// Network interface of rm, ru and tcp, for both sides on this host [default: 127.0.0.1]
    #[arg(long, value_name = "INTERFACE")]
    pub(super) interface: Option<String>,

    /// Only the rows between two network namespaces, with kernel bypass among them (xdp), or none
    /// of them (sockets) [default: all rows]
    #[arg(long, value_name = "WAY", value_parser = ["sockets", "xdp"])]
    pub(super) io: Option<String>,

    /// Only rows between two network namespaces by sockets: rm, ru and tcp without and with a path
    /// that frames at this interval, such as 100us, keep warm in silence (net.keep_warm). With -r 1
    /// each message is the first after a second
    #[arg(long, value_name = "INTERVAL", value_parser = parse_duration, conflicts_with = "io")]
    pub(super) keep_warm: Option<Duration>,

    /// Size of the publishers' windows, such as 1MiB
    #[arg(long, value_name = "SIZE")]
    pub(super) window: Option<Size>,

    /// Write the figures to a file, too: .jsonl, .html, .hlog or .txt; can be repeated
    /// [default: lat-report.jsonl and lat-report.html]
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub(super) output: Vec<PathBuf>,

    /// Print the measurement lines, and nothing else
    #[arg(long)]
    pub(super) json: bool,
}

impl LatArgs {
    pub(super) fn output(&self) -> Vec<PathBuf> {
        match self.output.as_slice() {
            [] => ["lat-report.jsonl", "lat-report.html"].map(PathBuf::from).to_vec(),
            output => output.to_vec(),
        }
    }

    pub(super) fn messages(&self) -> u64 {
        self.messages.unwrap_or(if self.quick { QUICK } else { DOCUMENT_MESSAGES })
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        if self.rate == 0 || self.messages() == 0 {
            refuse!("-r 0 and -n 0 measure nothing: take 1 or more");
        }
        if self.warmup.loops > 0 && self.warmup.rate == 0 {
            refuse!("-w {},0 has no rate: write loops,rate such as 5,5", self.warmup.loops);
        }
        if self.wants_bypass() && self.bypassing().next().is_none() {
            refuse!("--io xdp is for rm and ru: have one of them in --transports");
        }
        if self.keep_warm.is_some() && self.between_hosts().next().is_none() {
            refuse!("--keep-warm is for rm, ru and tcp: have one of them in --transports");
        }
        Ok(())
    }

    /// The option that asks for rows between two namespaces, and for no others.
    pub(super) fn over_veth_only(&self) -> Option<&'static str> {
        let keep_warm = self.keep_warm.map(|_| "--keep-warm");
        self.wants_bypass().then_some("--io xdp").or(keep_warm)
    }

    /// Whether the rows with kernel bypass were asked for by name, and no others.
    pub(super) fn wants_bypass(&self) -> bool {
        self.io.as_deref() == Some("xdp")
    }

    fn transports(&self) -> &[TransportName] {
        match self.transports.as_slice() {
            [] => TransportName::value_variants(),
            transports => transports,
        }
    }

    /// Transports that can pass the kernel's stack by.
    fn bypassing(&self) -> impl Iterator<Item = TransportName> + '_ {
        let is_datagrams = |it: &TransportName| matches!(it, TransportName::Rm | TransportName::Ru);
        self.transports().iter().copied().filter(is_datagrams)
    }

    /// Transports between hosts.
    fn between_hosts(&self) -> impl Iterator<Item = TransportName> + '_ {
        let is_outward =
            |it: &TransportName| !matches!(it, TransportName::Thread | TransportName::Shm);
        self.transports().iter().copied().filter(is_outward)
    }

    /// Expected time of one run.
    pub(super) fn expected(&self) -> Duration {
        let time = |count: u64, rate: u64| expected_time(count, rate.max(1) as f64);
        let warmup = time(self.warmup.loops, self.warmup.rate);
        OVERHEAD + warmup + time(self.messages(), self.rate)
    }

    /// One repetition: for each way to wait, bare sockets and transports one after the other, and
    /// then those between namespaces.
    pub(super) fn runs(&self, cpus: usize) -> Vec<LatRun> {
        let waits = if self.wait.is_empty() { &WAITS[..] } else { &self.wait };
        let runs = waits.iter().flat_map(|&wait| {
            let here =
                if self.over_veth_only().is_some() { Vec::new() } else { self.here(wait, cpus) };
            let targets = here.into_iter().chain(self.over_veth(wait));
            targets.map(move |target| LatRun { target, wait })
        });
        runs.collect()
    }

    /// Paths between two processes, or threads, that share this host's network.
    fn here(&self, wait: WaitStrategy, cpus: usize) -> Vec<Target> {
        let transports = self.transports();
        let floor = if self.no_floor { &[][..] } else { &SocketKind::ALL };
        let outward = |it: &&TransportName| **it != TransportName::Thread;
        // One is enough: the store is beside the path. Shared memory shows it best.
        let store_backed =
            transports.iter().filter(outward).min_by_key(|it| **it != TransportName::Shm);
        let store_backed = store_backed.filter(|_| !self.no_store);
        // A bare receive either spins or sleeps.
        let bare = floor.iter().filter(|_| WAITS.contains(&wait));
        let bare = bare.map(|&socket| Target::Bare(socket));
        let transports = bare.chain(transports.iter().map(|&it| Target::Transport(it)));
        // Two threads that spin would leave the store no CPU.
        let store_backed =
            store_backed.filter(|_| wait != WaitStrategy::BusySpin || cpus > SPINNING);
        let store_backed = store_backed
            .into_iter()
            .flat_map(|&transport| PersistMode::ALL.map(|it| Target::StoreBacked(transport, it)));
        transports.chain(store_backed).collect()
    }

    /// Paths between two namespaces: each transport by sockets, and past the stack or kept warm,
    /// one after the other, beside bare sockets of each kind.
    fn over_veth(&self, wait: WaitStrategy) -> Vec<Target> {
        if self.io.as_deref() == Some("sockets") {
            return Vec::new();
        }
        let transports: Vec<_> = match self.keep_warm {
            Some(_) => self.between_hosts().collect(),
            None => self.bypassing().collect(),
        };
        let has_bare = !self.no_floor && WAITS.contains(&wait);
        let bare = transports.iter().filter(|_| has_bare).filter_map(|it| match it {
            TransportName::Rm => Some(SocketKind::Multicast),
            TransportName::Ru => Some(SocketKind::Udp),
            TransportName::Tcp => Some(SocketKind::Tcp),
            TransportName::Thread | TransportName::Shm => None,
        });
        let paths = transports.iter().flat_map(|&it| match self.keep_warm {
            Some(_) => [VethPath::Sockets(it), VethPath::Warm(it)],
            None => [VethPath::Sockets(it), VethPath::Xdp(it)],
        });
        let paths = bare.map(VethPath::Bare).chain(paths);
        paths.map(Target::Veth).collect()
    }
}
