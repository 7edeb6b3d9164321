//! Publishes a load through the kernel and prints what was sent.

use anyhow::Result;
use clap::Parser;
use rivals_kernel::{Means, Outlet, accept};
use rivals_kit::{Load, Sender, publish};

/// Publishes a load through a Unix socket or a pipe
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    means: Means,
}

fn main() -> Result<()> {
    let Options { load, means } = Options::parse();
    load.check()?;
    let mut outlet = Outlet::new(&load, means, accept(&load, means)?);
    let line = publish(&load, &mut outlet)?;
    outlet.linger()?;
    println!("{line}");
    Ok(())
}
