//! Reads a load through ØMQ and prints what arrived.

use std::process;

use anyhow::Result;
use clap::Parser;
use rivals_kit::{Load, receive};
use rivals_zmq::{Intake, Tuning, VERSION};

/// Reads a load through ØMQ
#[derive(Debug, Parser)]
#[command(version = VERSION.as_str())]
struct Options {
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    tuning: Tuning,
}

fn main() -> Result<()> {
    let Options { load, tuning } = Options::parse();
    load.check()?;
    let mut intake = Intake::bind(&load, tuning, &process::id().to_string())?;
    let line = receive(&load, &mut intake)?;
    println!("{line}");
    Ok(())
}
