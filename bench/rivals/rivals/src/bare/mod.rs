//! Limits of the machine itself, measured in the same run as the transports: one cache line passed
//! from CPU to CPU, bytes copied from CPU to CPU, one CPU woken by another.
//!
//! Each is a command of its own (`rivals bare line ...`), so that the orchestrator starts it as it
//! starts any measured program.

mod arguments;
pub mod copy;
pub mod line;
pub mod rounds;
pub mod wake;

use anyhow::Result;
use arguments::OneWayArgs;
use clap::Subcommand;

/// One physical limit.
#[derive(Debug, Subcommand)]
pub enum Bare {
    /// One cache line from CPU to CPU, at a rate
    Line(OneWayArgs),
    /// A copy into a shared buffer on one CPU, out of it on the other
    Copy(OneWayArgs),
    /// One CPU woken by the other through a futex, at a rate
    Wake(OneWayArgs),
    /// One cache line from CPU to CPU and back, flat out
    Rounds(rounds::RoundArgs),
}

impl Bare {
    /// Measures and prints one result line.
    ///
    /// # Errors
    ///
    /// When a CPU cannot be used.
    pub fn run(&self) -> Result<()> {
        let line = match self {
            Bare::Line(arguments) => line::measure(arguments)?,
            Bare::Copy(arguments) => copy::measure(arguments)?,
            Bare::Wake(arguments) => wake::measure(arguments)?,
            Bare::Rounds(arguments) => rounds::measure(arguments)?,
        };
        println!("{line}");
        Ok(())
    }
}
