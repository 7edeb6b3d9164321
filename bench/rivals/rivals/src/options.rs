//! The command line.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use crate::row::{Between, Row};

/// Bytes of a message between threads: one word.
const THREAD_SIZE: usize = 8;
/// The longest message between processes.
const LONGEST: usize = 4096;
/// The longest message between hosts.
const LONGEST_BETWEEN_HOSTS: usize = 60_000;
/// Seconds of load that a repetition may be asked to have.
const LONGEST_S: f64 = 3_600.0;
/// Messages per second of those that go there and back.
const ROUNDS_PER_S: u64 = 50_000;
/// The same where both ends sleep each time: about half of what they can do.
const SLEEPY_ROUNDS_PER_S: u64 = 10_000;

/// One transport that is not lanecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Peer {
    /// Aeron IPC (Java), between hosts UDP and multicast (C)
    Aeron,
    /// iceoryx2 (Rust)
    Iceoryx2,
    /// ØMQ over ipc, between threads over inproc, between hosts over TCP (C++)
    Zmq,
    /// Unix sockets
    Unix,
    /// Pipes
    Pipe,
    /// LMAX Disruptor (Java)
    Lmax,
    /// The crate disruptor
    Disruptor,
    /// The crate rtrb
    Rtrb,
    /// crossbeam's channel and queues
    Crossbeam,
    /// The crate kanal
    Kanal,
    /// `std::sync::mpsc`
    Std,
    /// `tokio::sync::mpsc`
    Tokio,
    /// Bare UDP and multicast sockets between hosts
    Udp,
    /// Bare TCP sockets between hosts
    Tcp,
    /// NATS, with a server on the publisher's host (Go)
    Nats,
    /// Zenoh, peer to peer over TCP (Rust)
    Zenoh,
    /// Frames past the kernel's stack (AF_XDP), between hosts
    Xdp,
    /// UDP by io_uring, between hosts
    Uring,
}

impl Peer {
    /// Name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Choices of a run. Sizes and rates that are not given have a default for each row.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Rows to measure, separated by commas
    #[arg(long, value_enum, value_delimiter = ',')]
    pub rows: Vec<Row>,
    /// Message sizes in bytes, for every row
    #[arg(long, value_delimiter = ',')]
    pub sizes: Vec<usize>,
    /// Messages per second of the rows that have a rate
    #[arg(long, value_delimiter = ',')]
    pub rates: Vec<u64>,
    /// Numbers of subscribers of the fanout row
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3])]
    pub subscribers: Vec<usize>,
    /// Messages that are published at once, for the rows batch and pipe
    #[arg(long, value_delimiter = ',', default_values_t = [16, 64, 256])]
    pub batches: Vec<u64>,
    /// Per cent of packets that the lossy rows lose
    #[arg(long, value_delimiter = ',', default_values_t = [1, 5])]
    pub losses: Vec<u32>,
    /// Interleaved repetitions of each figure
    #[arg(long, visible_alias = "reps")]
    pub pairs: Option<usize>,
    /// Seconds of measured load in each repetition
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Peers to compare with
    #[arg(long, value_enum, value_delimiter = ',',
          default_values = ["aeron", "iceoryx2", "zmq", "unix", "pipe", "lmax", "disruptor",
                            "rtrb", "crossbeam", "kanal", "std", "tokio", "udp", "tcp", "nats",
                            "zenoh", "xdp", "uring"])]
    pub peers: Vec<Peer>,
    /// Rows between threads, in place of those between processes
    #[arg(long)]
    pub threads: bool,
    /// Rows between hosts, in network namespaces: needs root, ip and nft
    #[arg(long, conflicts_with = "threads")]
    pub network: bool,
    /// Rows between hosts over the loopback interface: needs no root, cannot lose packets
    #[arg(long)]
    pub loopback: bool,
    /// Leave lanecast out
    #[arg(long)]
    pub peers_only: bool,
    /// Fewer sizes and rates, 3 pairs of half a second
    #[arg(long)]
    pub quick: bool,
    /// One size, one rate, one pair of a fifth of a second: only to see that everything works
    #[arg(long)]
    pub smoke: bool,
    /// Write all figures to this file, one line for each repetition, for `lanecast report`
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// CPU of the publisher
    #[arg(long, default_value_t = 0)]
    pub publisher_cpu: usize,
    /// CPU of every subscriber
    #[arg(long, default_value_t = 1)]
    pub subscriber_cpu: usize,
    /// Program of lanecast; found beside the peers' workspace when not given
    #[arg(long, value_name = "FILE")]
    pub lanecast: Option<PathBuf>,
    /// Folder with the built Java programs; found beside the peers' workspace when not given
    #[arg(long, value_name = "FOLDER")]
    pub java: Option<PathBuf>,
}

/// Part of the full programme that a run covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Smoke,
    Quick,
    Full,
}

impl Options {
    /// Refuses choices that cannot be measured.
    ///
    /// # Errors
    ///
    /// Names the choice.
    pub fn check(&self) -> Result<()> {
        ensure!(self.pairs() > 0, "--pairs must be at least 1");
        let is_time = self.seconds() > 0.0 && self.seconds() <= LONGEST_S;
        ensure!(is_time, "--seconds must be more than 0 and at most {LONGEST_S}");
        let hosts = self.rows().iter().all(|row| row.is_between_hosts());
        let longest = if hosts { LONGEST_BETWEEN_HOSTS } else { LONGEST };
        let fits = |size: &usize| (8..=longest).contains(size);
        ensure!(self.sizes.iter().all(fits), "--sizes: 8 to {longest}");
        ensure!(self.losses.iter().all(|share| *share < 100), "--losses: 0 to 99 per cent");
        let strangers = self.network && self.rows.iter().any(|row| !row.is_between_hosts());
        ensure!(!strangers, "--network: leave it out, or ask for rows between hosts only");
        let strangers = self.threads && self.rows.iter().any(|row| !row.is_between_threads());
        ensure!(!strangers, "--threads: leave it out, or ask for rows between threads only");
        ensure!(self.rates.iter().all(|rate| *rate > 0), "--rates must be more than 0");
        ensure!(self.subscribers.iter().all(|n| (1..=8).contains(n)), "--subscribers: 1 to 8");
        ensure!(self.batches.iter().all(|n| (1..=4096).contains(n)), "--batches: 1 to 4096");
        Ok(())
    }

    /// Interleaved repetitions.
    pub fn pairs(&self) -> usize {
        self.pairs.unwrap_or(self.by_extent(1, 3, 5))
    }

    /// Seconds of measured load.
    pub fn seconds(&self) -> f64 {
        self.seconds.unwrap_or(self.by_extent(0.05, 0.5, 1.5))
    }

    /// Rows in the order in which they were asked for, or those of the programme.
    pub fn rows(&self) -> Vec<Row> {
        if !self.rows.is_empty() {
            return self.rows.clone();
        }
        if self.threads {
            return Row::all(Between::Threads);
        }
        if self.network {
            return self.network_rows();
        }
        let smoke: &[Row] = &[Row::Bare, Row::Rate, Row::Latency];
        let full: &[Row] = &[Row::Bare, Row::Rate, Row::Touch, Row::Latency, Row::Fanout];
        self.by_extent(smoke, full, full).to_vec()
    }

    /// Without root nothing can be lost on purpose, nor pass the kernel's stack by.
    fn network_rows(&self) -> Vec<Row> {
        let mut rows = Row::all(Between::Hosts);
        rows.retain(|row| !(self.loopback && (row.is_lossy() || row.needs_ethernet())));
        let smoke = [Row::UdpPingpong, Row::TcpPingpong, Row::Oneway];
        rows.retain(|row| !self.smoke || smoke.contains(row));
        rows
    }

    /// Sizes of a row.
    pub fn sizes_of(&self, row: Row) -> Vec<usize> {
        if row.is_between_threads() {
            return vec![THREAD_SIZE];
        }
        if !self.sizes.is_empty() {
            return self.sizes.clone();
        }
        let (quick, full): (&[usize], &[usize]) = match row {
            Row::Rate | Row::Touch => (&[25, 100, 1500], &[25, 64, 100, 128, 500, 1500]),
            Row::Latency => (&[100, 1500], &[100, 500, 1500]),
            Row::Fanout => (&[100], &[100, 1500]),
            Row::Bare | Row::Wake => (&[100], &[100]),
            row if row.is_round_trip() => return vec![24],
            Row::Oneway => (&[24, 1000], &[24, 1000, 8000]),
            Row::XdpOneway => (&[24], &[24, 1000]),
            Row::Fanout3 => (&[24, 1000], &[24, 1000]),
            Row::LossOneway => return vec![1000],
            _ => (&[THREAD_SIZE], &[THREAD_SIZE]),
        };
        self.by_extent::<&[usize]>(&[100], quick, full).to_vec()
    }

    /// Rates of a row between hosts.
    pub fn rates_of(&self, row: Row) -> Vec<u64> {
        match row {
            row if !row.is_round_trip() => vec![0],
            _ if !self.rates.is_empty() => self.rates.clone(),
            Row::BlockPingpong => vec![SLEEPY_ROUNDS_PER_S],
            // Once a second is about what silence of a second means.
            Row::Idle => vec![ROUNDS_PER_S, 1],
            _ => vec![ROUNDS_PER_S],
        }
    }

    /// Rates of the latency row.
    pub fn rates(&self) -> Vec<u64> {
        if !self.rates.is_empty() {
            return self.rates.clone();
        }
        let full: &[u64] = &[250_000, 1_000_000, 5_000_000];
        self.by_extent(&full[1..2], &full[1..], full).to_vec()
    }

    fn by_extent<T>(&self, smoke: T, quick: T, full: T) -> T {
        match self.extent() {
            Extent::Smoke => smoke,
            Extent::Quick => quick,
            Extent::Full => full,
        }
    }

    fn extent(&self) -> Extent {
        match (self.smoke, self.quick) {
            (true, _) => Extent::Smoke,
            (false, true) => Extent::Quick,
            (false, false) => Extent::Full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn rows_between_threads_may_be_asked_for_beside_threads() {
        let words = ["rivals", "--threads", "--rows", "queue,pop", "--pairs", "1"];
        let options = Cli::try_parse_from(words).map(|cli| cli.options).expect("understood");
        assert!(options.check().is_ok());
        assert_eq!(options.rows(), [Row::Queue, Row::Pop]);
    }
}
