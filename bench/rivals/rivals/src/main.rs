//! Runs lanecast and its peers side by side, interleaved and pinned alike, and prints each
//! figure beside the ratio.

mod bare;
mod campaign;
mod cell;
mod disturbance;
mod host;
mod measurement;
mod options;
mod process;
mod raise;
mod record;
mod report;
mod scratch;
mod sides;
mod summary;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

use campaign::run_row;
use host::Host;
use options::{Options, Peer};
use record::Record;
use sides::Side;
use sides::aeron::Aeron;
use sides::bare::Bare;
use sides::iceoryx2::Iceoryx2;
use sides::lanecast::Lanecast;

/// Runs lanecast and its peers side by side
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    options: Options,
}

/// What the program does for itself when it starts measured programs.
#[derive(Debug, Subcommand)]
enum Part {
    /// Becomes another program, in a raised session of its own
    Raise(raise::Raise),
    /// Measures what the machine itself can do
    #[command(subcommand)]
    Bare(bare::Bare),
}

fn main() -> Result<ExitCode> {
    let cli = Cli::parse();
    match cli.part {
        Some(Part::Raise(raise)) => raise.run()?,
        Some(Part::Bare(bare)) => bare.run()?,
        None => return compare(&cli.options),
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures everything that was asked for; fails when a repetition failed or lost messages.
fn compare(options: &Options) -> Result<ExitCode> {
    options.check()?;
    scratch::sweep();
    let host = Host::look();
    println!("{}", host.line());
    println!(
        "publisher on CPU {}, subscribers on CPU {}",
        options.publisher_cpu, options.subscriber_cpu
    );
    let sides = present(options)?;
    let mut record = Record::new(host, &sides, options);
    let mut troubles = Vec::new();
    for row in options.rows() {
        let outcomes = run_row(row, &sides, options);
        println!("\n{}", report::text(row, &outcomes, options));
        troubles.extend(report::troubles(&outcomes));
        record.add(row, &outcomes);
    }
    println!("load {:.2} at the end", host::load());
    if let Some(path) = &options.json {
        record.write(path)?;
    }
    for trouble in &troubles {
        println!("{trouble}");
    }
    Ok(if troubles.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The sides that are there, lanecast first; says why one is missing.
fn present(options: &Options) -> Result<Vec<Box<dyn Side>>> {
    let mut sides: Vec<Box<dyn Side>> = Vec::new();
    let built = own_folder()?;
    // target/release lies two folders below the workspace, which lies two below the product's.
    let workspace = built.ancestors().nth(2).context("not in a workspace's target folder")?;
    let product = workspace.ancestors().nth(2).context("no product beside the peers")?;
    if !options.peers_only {
        let program = options.lanecast.clone();
        let program = program.unwrap_or_else(|| product.join("target/release/lanecast"));
        add(&mut sides, "lanecast", Lanecast::new(&program));
    }
    for peer in &options.peers {
        match peer {
            Peer::Aeron => {
                let folder = options.aeron.clone();
                let folder = folder.unwrap_or_else(|| workspace.join("aeron/target"));
                add(&mut sides, "aeron", Aeron::new(&folder));
            }
            Peer::Iceoryx2 => add(&mut sides, "iceoryx2", Ok(Iceoryx2::new(&built))),
        }
    }
    if sides.is_empty() {
        bail!("nothing to measure");
    }
    add(&mut sides, "bare", Ok(Bare));
    Ok(sides)
}

fn add<S: Side + 'static>(sides: &mut Vec<Box<dyn Side>>, name: &str, side: Result<S>) {
    match side {
        Ok(side) => {
            println!("{name} {}", side.version());
            sides.push(Box::new(side));
        }
        Err(error) => println!("{name} left out: {error:#}"),
    }
}

fn own_folder() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    own.parent().map(Path::to_owned).context("this program lies nowhere")
}
