//! The load of one measured run between threads.

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use rivals_kit::Wait;

/// Most producers of a run: the number of each lane has a place in every value.
pub const MOST_PRODUCERS: usize = 8;
/// Messages before the measured ones, as a part of them.
const WARMUP_PART: u64 = 8;

/// One kind of comparison, under the name that the orchestrator gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Row {
    /// Published one by one, drained as the library can
    Queue,
    /// Published one by one, popped one by one
    Pop,
    /// Published and drained in batches
    Batch,
    /// Every consumer gets every message
    Multicast,
    /// The same, and the last consumer gets only what the others are done with
    Diamond,
    /// Several producers, and each message to one of several consumers
    Mpmc,
    /// Round trips, spinning
    Pingpong,
    /// Round trips, sleeping
    PingpongPark,
    /// One way, each flush visible at once
    Pipe,
}

/// Messages, producers, consumers and their CPUs.
#[derive(Args, Clone, Copy, Debug)]
pub struct Load {
    /// Kind of comparison
    #[arg(long, value_enum)]
    pub row: Row,
    /// Messages that are published at once
    #[arg(long, default_value_t = 1)]
    pub batch: u64,
    /// Producing threads
    #[arg(long, default_value_t = 1)]
    pub producers: usize,
    /// Consuming threads
    #[arg(long, default_value_t = 1)]
    pub consumers: usize,
    /// Messages of the measured part, or round trips
    #[arg(long, default_value_t = 1_000_000)]
    pub messages: u64,
    /// Messages that a bounded queue holds; a power of two
    #[arg(long, default_value_t = 1 << 16)]
    pub capacity: usize,
    /// CPU of the producer
    #[arg(long, default_value_t = 0)]
    pub producer_cpu: usize,
    /// CPU of every consumer; with several producers, both take turns
    #[arg(long, default_value_t = 1)]
    pub consumer_cpu: usize,
}

impl Load {
    /// Refuses what cannot be measured.
    ///
    /// # Errors
    ///
    /// Names the option.
    pub fn check(&self) -> Result<()> {
        let producers = 1..=MOST_PRODUCERS;
        ensure!(producers.contains(&self.producers), "--producers: 1 to {MOST_PRODUCERS}");
        ensure!(self.consumers > 0, "--consumers must be at least 1");
        ensure!(self.messages >= self.producers as u64, "--messages: at least 1 a producer");
        ensure!(self.capacity.is_power_of_two(), "--capacity must be a power of two");
        let batches = 1..=self.capacity as u64;
        ensure!(batches.contains(&self.batch), "--batch: 1 to --capacity");
        Ok(())
    }

    /// Wait strategy of an end without work. Where more threads spin than there are CPUs, they must
    /// yield.
    pub fn wait(&self) -> Wait {
        match self.row {
            Row::Multicast | Row::Diamond | Row::Mpmc => Wait::Yield,
            Row::PingpongPark => Wait::Block,
            _ => Wait::Spin,
        }
    }

    /// Whether each message goes to one of several consumers.
    pub fn is_shared(&self) -> bool {
        self.row == Row::Mpmc
    }

    /// CPU of a producing thread.
    pub fn cpu_of_producer(&self, index: usize) -> usize {
        if self.is_shared() { self.mixed(index) } else { self.producer_cpu }
    }

    /// CPU of a consuming thread.
    pub fn cpu_of_consumer(&self, index: usize) -> usize {
        if self.is_shared() { self.mixed(index) } else { self.consumer_cpu }
    }

    /// Messages of the warm-up and of the measured part, for each producer.
    pub fn parts(&self) -> [u64; 2] {
        let each = self.messages / self.producers as u64;
        [each.div_ceil(WARMUP_PART), each]
    }

    fn mixed(&self, index: usize) -> usize {
        if index.is_multiple_of(2) { self.producer_cpu } else { self.consumer_cpu }
    }
}
