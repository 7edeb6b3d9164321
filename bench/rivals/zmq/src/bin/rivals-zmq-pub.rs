//! Publishes a load through ØMQ and prints what was sent.

use anyhow::Result;
use clap::Parser;
use rivals_kit::{Load, Sender, publish};
use rivals_zmq::{Outlet, Tuning, VERSION};

/// Publishes a load through ØMQ
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
    let mut outlet = Outlet::connect(&load, tuning)?;
    let line = publish(&load, &mut outlet)?;
    outlet.linger()?;
    println!("{line}");
    Ok(())
}
