//! The command line that every publisher and every subscriber understands.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use crate::message;

/// Part of each message that is written and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Touch {
    /// The sequence number (and the stamps when latency is measured); the body stays as it was.
    Header,
    /// Every byte is written, every byte is read, and the sum of the body is checked.
    Whole,
}

/// Wait strategy of a side without work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Wait {
    /// Asks again at once.
    Spin,
    /// Asks again at once 20 times, then gives the CPU away between two questions: for more
    /// spinning programs than CPUs.
    Yield,
    /// Sleeps in the kernel until there is something; only where the transport can.
    Block,
}

/// Which end of the stream a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Writes the messages.
    Publisher,
    /// Reads the messages.
    Subscriber,
}

impl fmt::Display for Touch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Touch::Header => "header",
            Touch::Whole => "whole",
        })
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wait::Spin => "spin",
            Wait::Yield => "yield",
            Wait::Block => "block",
        })
    }
}

/// The load of one measured run, as both ends see it.
#[derive(Args, Clone, Debug)]
pub struct Load {
    /// CPU that the measuring thread is pinned to
    #[arg(long)]
    pub cpu: usize,
    /// Bytes of one message, sequence number and stamps included
    #[arg(long, default_value_t = 100)]
    pub size: usize,
    /// Messages of the measured part
    #[arg(long, default_value_t = 1_000_000)]
    pub messages: u64,
    /// Messages per second, 0 = flat out
    #[arg(long, default_value_t = 0)]
    pub rate: u64,
    /// Topic both ends agree on
    #[arg(long, default_value = "rivals")]
    pub topic: String,
    /// Part of each message that is written and read
    #[arg(long, value_enum, default_value_t = Touch::Header)]
    pub touch: Touch,
    /// Stamp every message and record its latency
    #[arg(long)]
    pub latency: bool,
    /// Wait strategy of a side without work
    #[arg(long, value_enum, default_value_t = Wait::Spin)]
    pub wait: Wait,
    /// Milliseconds of unmeasured load before the measured part
    #[arg(long, default_value_t = 300)]
    pub warmup_ms: u64,
    /// Subscribers that the publisher waits for
    #[arg(long, default_value_t = 1)]
    pub subscribers: usize,
    /// Name of the shared-memory domain, one for each run
    #[arg(long, default_value = "rivals")]
    pub domain: String,
}

impl Load {
    /// Refuses a load that no message can carry.
    ///
    /// # Errors
    ///
    /// When the message is too short for what it must hold, or nothing is to be sent.
    pub fn check(&self) -> Result<()> {
        let least = message::least_size(self.latency);
        ensure!(self.size >= least, "--size must be at least {least} bytes for this load");
        ensure!(self.messages > 0, "--messages must be at least 1");
        ensure!(self.subscribers > 0, "--subscribers must be at least 1");
        Ok(())
    }

    /// Time of unmeasured load before the measured part.
    pub fn warmup(&self) -> Duration {
        Duration::from_millis(self.warmup_ms)
    }
}
