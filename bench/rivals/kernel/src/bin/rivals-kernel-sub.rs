//! Reads a load through the kernel and prints what arrived.

use anyhow::Result;
use clap::Parser;
use rivals_kernel::{Intake, Over, join};
use rivals_kit::{Load, receive};

/// Reads a load through a Unix socket or a pipe
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    #[command(flatten)]
    load: Load,
    /// Which of the kernel's means
    #[arg(long, value_enum)]
    over: Over,
}

fn main() -> Result<()> {
    let Options { load, over } = Options::parse();
    load.check()?;
    let mut intake = Intake::new(&load, over, join(&load, over)?);
    let line = receive(&load, &mut intake)?;
    println!("{line}");
    Ok(())
}
