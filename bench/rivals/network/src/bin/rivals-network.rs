//! One end of one peer between hosts, or the list of peers.

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use rivals_kit::Load;
use rivals_network::peers::CASES;
use rivals_network::place::Place;

/// One end of one peer between hosts
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Lists the peers: peer, way of using it, version, rows
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

fn main() -> Result<()> {
    match Cli::parse().part {
        Part::List => {
            for case in CASES {
                println!(
                    "{} {} {} {}",
                    case.peer,
                    case.name,
                    (case.version)(),
                    case.rows.join(" ")
                );
            }
            Ok(())
        }
        Part::Run(Run { peer, load, place }) => rivals_network::run(&peer, &load, &place),
    }
}
