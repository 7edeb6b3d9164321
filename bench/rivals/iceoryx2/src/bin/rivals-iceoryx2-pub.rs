//! Publishes a load through iceoryx2 and prints what was sent.

use anyhow::Result;
use clap::Parser;
use rivals_iceoryx2::{Outlet, Service};
use rivals_kit::{Load, Sender, publish};

/// Publishes a load through iceoryx2
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    #[command(flatten)]
    load: Load,
}

fn main() -> Result<()> {
    let load = Options::parse().load;
    load.check()?;
    let mut outlet = Outlet::connect(&load, Service::open(&load)?)?;
    let line = publish(&load, &mut outlet)?;
    outlet.linger()?;
    println!("{line}");
    Ok(())
}
