//! Limits of the machine itself, measured in the same run as the transports: one cache line passed
//! from CPU to CPU, bytes copied from CPU to CPU, one CPU woken by another.
//!
//! Each is a command of its own (`rivals bare line ...`), so that the orchestrator starts it as it
//! starts any measured program.

pub mod copy;
pub mod line;
pub mod rounds;
pub mod wake;

use anyhow::Result;
use clap::{Args, Subcommand};

/// One physical limit.
#[derive(Debug, Subcommand)]
pub enum Bare {
    /// One cache line from CPU to CPU, at a rate
    Line(Hand),
    /// A copy into a shared buffer on one CPU, out of it on the other
    Copy(Hand),
    /// One CPU woken by the other through a futex, at a rate
    Wake(Hand),
    /// One cache line from CPU to CPU and back, flat out
    Rounds(rounds::Hands),
}

/// CPUs and number of bytes.
#[derive(Args, Clone, Debug)]
pub struct Hand {
    /// CPU of the writing side
    #[arg(long, default_value_t = 0)]
    pub from_cpu: usize,
    /// CPU of the reading side
    #[arg(long, default_value_t = 1)]
    pub to_cpu: usize,
    /// Hand-overs per second; not used by the copy
    #[arg(long, default_value_t = 1_000_000)]
    pub rate: u64,
    /// Milliseconds of measured time
    #[arg(long, default_value_t = 500)]
    pub duration_ms: u64,
    /// Milliseconds of unmeasured time before
    #[arg(long, default_value_t = 100)]
    pub warmup_ms: u64,
}

impl Bare {
    /// Measures and prints one result line.
    ///
    /// # Errors
    ///
    /// When a CPU cannot be used.
    pub fn run(&self) -> Result<()> {
        let line = match self {
            Bare::Line(hand) => line::measure(hand)?,
            Bare::Copy(hand) => copy::measure(hand)?,
            Bare::Wake(hand) => wake::measure(hand)?,
            Bare::Rounds(hands) => rounds::measure(hands)?,
        };
        println!("{line}");
        Ok(())
    }
}
