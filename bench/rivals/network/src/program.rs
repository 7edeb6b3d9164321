//! The command line of every program that plays an end.

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use rivals_kit::Load;

use crate::peers::Case;
use crate::place::Place;

/// One end of one peer between hosts
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Lists the peers: peer, way of using it, version, family, floor or peer, wait, rows
    List,
    /// Plays a role
    Run(Run),
}

#[derive(Args, Debug)]
struct Run {
    /// Way of using a peer, as listed
    #[arg(long)]
    peer: String,
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    place: Place,
}

/// Does what the command line says; `run` plays a role with a peer that is called by its name.
///
/// # Errors
///
/// What the role reports.
pub fn main(cases: &[Case], run: impl FnOnce(&str, &Load, &Place) -> Result<()>) -> Result<()> {
    match Cli::parse().part {
        Part::List => {
            for case in cases {
                println!("{case}");
            }
            Ok(())
        }
        Part::Run(Run { peer, load, place }) => {
            load.check()?;
            run(&peer, &load, &place)
        }
    }
}
