//! What the person at the keyboard chooses.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

/// One kind of comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Row {
    /// The machine's own limits: cache line, copy, wake-up
    Bare,
    /// One publisher, one subscriber, flat out, header touched
    Rate,
    /// The same with every byte written and read
    Touch,
    /// One-way latency at fixed rates
    Latency,
    /// One publisher, one to three subscribers that share a CPU
    Fanout,
    /// Wake-up of a sleeping subscriber against a bare futex
    Wake,
    /// Between threads, 8 bytes: published one by one, drained as the library can
    Queue,
    /// The same, popped one by one
    Pop,
    /// The same in batches
    Batch,
    /// One producer, three consumers that each get everything
    Multicast,
    /// The same, the third after the other two
    Diamond,
    /// Two to four producers and consumers, each message to one of them
    Mpmc,
    /// Round trips, spinning
    Pingpong,
    /// Round trips, sleeping each time, on two CPUs and on one
    PingpongPark,
    /// One way, against sockets: each message visible at once, and in batches
    Pipe,
}

/// Rows between threads of one process; all others are between processes.
const BETWEEN_THREADS: [Row; 9] = [
    Row::Queue,
    Row::Pop,
    Row::Batch,
    Row::Multicast,
    Row::Diamond,
    Row::Mpmc,
    Row::Pingpong,
    Row::PingpongPark,
    Row::Pipe,
];

impl Row {
    /// Whether messages go from thread to thread, and not from process to process.
    pub fn is_between_threads(self) -> bool {
        BETWEEN_THREADS.contains(&self)
    }
}

/// Bytes of a message between threads: one word.
const THREAD_SIZE: usize = 8;

/// One transport that is not lanecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Peer {
    /// Aeron IPC (Java)
    Aeron,
    /// iceoryx2 (Rust)
    Iceoryx2,
    /// ØMQ over ipc, between threads over inproc (C++)
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
}

impl Peer {
    /// Its name on the command line.
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
    /// Messages per second of the latency row
    #[arg(long, value_delimiter = ',')]
    pub rates: Vec<u64>,
    /// Numbers of subscribers of the fanout row
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3])]
    pub subscribers: Vec<usize>,
    /// Messages that are published at once, for the rows batch and pipe
    #[arg(long, value_delimiter = ',', default_values_t = [16, 64, 256])]
    pub batches: Vec<u64>,
    /// Interleaved repetitions of each figure
    #[arg(long)]
    pub pairs: Option<usize>,
    /// Seconds of measured load in each repetition
    #[arg(long)]
    pub seconds: Option<f64>,
    /// Peers to compare with
    #[arg(long, value_enum, value_delimiter = ',',
          default_values = ["aeron", "iceoryx2", "zmq", "unix", "pipe", "lmax", "disruptor",
                            "rtrb", "crossbeam", "kanal", "std", "tokio"])]
    pub peers: Vec<Peer>,
    /// All rows between threads, in place of those between processes
    #[arg(long, conflicts_with = "rows")]
    pub threads: bool,
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

/// How much of the full programme a run goes through.
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
        ensure!(self.seconds() > 0.0, "--seconds must be more than 0");
        ensure!(self.sizes.iter().all(|size| (8..=4096).contains(size)), "--sizes: 8 to 4096");
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
        self.seconds.unwrap_or(self.by_extent(0.2, 0.5, 1.5))
    }

    /// Rows in the order in which they were asked for, or those of the programme.
    pub fn rows(&self) -> Vec<Row> {
        if !self.rows.is_empty() {
            return self.rows.clone();
        }
        if self.threads {
            return BETWEEN_THREADS.to_vec();
        }
        let smoke: &[Row] = &[Row::Bare, Row::Rate, Row::Latency];
        let full: &[Row] = &[Row::Bare, Row::Rate, Row::Touch, Row::Latency, Row::Fanout];
        self.by_extent(smoke, full, full).to_vec()
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
            _ => (&[THREAD_SIZE], &[THREAD_SIZE]),
        };
        self.by_extent::<&[usize]>(&[100], quick, full).to_vec()
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
