//! Reads a load through iceoryx2 and prints what arrived.

use anyhow::Result;
use clap::Parser;
use rivals_iceoryx2::{Intake, Service};
use rivals_kit::{Load, receive};

/// Reads a load through iceoryx2
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    #[command(flatten)]
    load: Load,
}

fn main() -> Result<()> {
    let load = Options::parse().load;
    load.check()?;
    let mut intake = Intake::connect(Service::open(&load)?)?;
    let line = receive(&load, &mut intake)?;
    println!("{line}");
    Ok(())
}
