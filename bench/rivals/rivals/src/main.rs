//! Runs lanecast and its peers side by side, interleaved and pinned alike, and prints each
//! figure beside the ratio.

mod bare;
mod campaign;
mod cell;
mod disturbance;
mod host;
mod hosts;
mod interrupt;
mod lines;
mod measurement;
mod options;
mod process;
mod raise;
mod report;
mod row;
mod scratch;
mod sides;
mod summary;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

use campaign::{run_row, unix_ns};
use host::Host;
use hosts::Hosts;
use lines::Lines;
use options::{Options, Peer};
use row::Between;
use sides::Side;
use sides::aeron::Aeron;
use sides::bare::Bare;
use sides::iceoryx2::Iceoryx2;
use sides::kernel::{Kernel, Means};
use sides::lanecast::Lanecast;
use sides::network::Ends;
use sides::zmq::Zmq;
use sides::{lmax, queues};

/// Runs lanecast and its peers side by side
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    options: Options,
}

/// Internal command of the program, for the processes that it starts itself.
#[derive(Debug, Subcommand)]
enum Part {
    /// Becomes another program, in a raised session of its own
    Raise(raise::Raise),
    /// Measures what the machine itself can do
    #[command(subcommand)]
    Bare(bare::Bare),
}

fn main() -> ExitCode {
    rivals_kit::ending(run(Cli::parse()))
}

fn run(cli: Cli) -> Result<ExitCode> {
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
    interrupt::listen()?;
    scratch::sweep();
    let host = Host::look();
    if cfg!(debug_assertions) {
        println!("built without optimisation: this shows that it works, and not how fast");
    }
    println!("{}", host.line());
    println!(
        "publisher on CPU {}, subscribers on CPU {}",
        options.publisher_cpu, options.subscriber_cpu
    );
    let (sides, missing) = present(options, &host)?;
    let mut lines = match &options.json {
        Some(path) => Some(Lines::create(path, &product_version(&sides), &host, options)?),
        None => None,
    };
    for (name, why) in &missing {
        println!("{name} left out: {why}");
        if let Some(lines) = &mut lines {
            lines.skip(unix_ns(), name, why)?;
        }
    }
    let mut troubles = Vec::new();
    for row in options.rows() {
        let outcomes = run_row(row, &sides, options);
        println!("\n{}", report::text(row, &outcomes, options));
        troubles.extend(report::troubles(&outcomes));
        if let Some(lines) = &mut lines {
            lines.add(&outcomes)?;
        }
        interrupt::check()?;
    }
    println!("load {:.2} at the end", host::load());
    for trouble in &troubles {
        println!("{trouble}");
    }
    Ok(if troubles.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Sides that are there, and names of those that are not, with the reason.
type Present = (Vec<Box<dyn Side>>, Vec<(String, String)>);

/// The sides that are there and that a row asks for, lanecast first.
fn present(options: &Options, host: &Host) -> Result<Present> {
    let mut found: Present = (Vec::new(), Vec::new());
    let built = own_folder()?;
    // target/release lies two folders below the workspace, which lies two below the product's.
    let workspace = built.ancestors().nth(2).context("not in a workspace's target folder")?;
    let java = options.java.clone().unwrap_or_else(|| workspace.join("java/target"));
    let rows = options.rows();
    let any = |between| rows.iter().any(|row| row.between() == between);
    if any(Between::Processes) {
        add_processes(&mut found, (&built, workspace, &java), options, host)?;
    }
    if any(Between::Threads) {
        add_threads(&mut found, (&built, &java), options);
    }
    if any(Between::Hosts) {
        add_hosts(&mut found, &built, options)?;
    }
    if found.0.is_empty() {
        bail!("nothing to measure");
    }
    if any(Between::Processes) || any(Between::Threads) {
        add(&mut found, "bare", Ok(Bare));
    }
    Ok(found)
}

/// Sides whose messages go from process to process.
fn add_processes(
    found: &mut Present,
    (built, workspace, java): (&Path, &Path, &Path),
    options: &Options,
    host: &Host,
) -> Result<()> {
    if !options.peers_only {
        let profile = built.file_name().unwrap_or_default();
        let product = workspace.ancestors().nth(2).map(|product| product.join("target"));
        let beside = product.map(|target| target.join(profile).join("lanecast"));
        let program = options.lanecast.clone().or(beside);
        let program = program.context("no product beside the peers: --lanecast names it")?;
        add(found, "lanecast", Lanecast::new(&program));
    }
    let kernel = |means| Kernel::new(built, means, host.kernel.as_deref());
    for peer in &options.peers {
        match peer {
            Peer::Aeron => add(found, "aeron", Aeron::new(java)),
            Peer::Iceoryx2 => add(found, "iceoryx2", Iceoryx2::new(built)),
            Peer::Zmq => add(found, "zmq", Zmq::new(built)),
            Peer::Unix => add(found, "unix", kernel(Means::Unix)),
            Peer::Pipe => add(found, "pipe", kernel(Means::Pipe)),
            // These hand over between threads only.
            Peer::Lmax | Peer::Disruptor | Peer::Rtrb | Peer::Crossbeam => (),
            Peer::Kanal | Peer::Std | Peer::Tokio => (),
            // And these between hosts only.
            Peer::Udp | Peer::Tcp | Peer::Nats | Peer::Zenoh | Peer::Xdp | Peer::Uring => (),
        }
    }
    Ok(())
}

/// Sides whose messages go from thread to thread: lanecast, then the peers in their order.
fn add_threads(found: &mut Present, (built, java): (&Path, &Path), options: &Options) {
    let mut cases = match queues::all(built) {
        Ok(cases) => cases,
        Err(error) => return found.1.push(("queues".into(), format!("{error:#}"))),
    };
    if !options.peers_only {
        let own = cases.extract_if(.., |case| case.is_own()).collect();
        add_all(found, "lanecast", Ok(own));
    }
    for peer in &options.peers {
        match peer {
            Peer::Lmax => add_all(found, "lmax", lmax::all(java)),
            // These hand over between processes or hosts only.
            Peer::Aeron | Peer::Iceoryx2 | Peer::Pipe => (),
            Peer::Udp | Peer::Tcp | Peer::Nats | Peer::Zenoh | Peer::Xdp | Peer::Uring => (),
            peer => {
                let own = cases.extract_if(.., |case| case.is_of(*peer)).collect();
                add_all(found, &peer.name(), Ok(own));
            }
        }
    }
}

/// Sides whose messages go from host to host: lanecast, then the peers in their order.
fn add_hosts(found: &mut Present, built: &Path, options: &Options) -> Result<()> {
    let hosts = Rc::new(Hosts::new(&options.rows(), options.loopback)?);
    let ends = |name, server| Ends { name, server };
    if !options.peers_only {
        add_all(found, "lanecast", ends("rivals-network", None).of(None, built, &hosts));
    }
    for peer in &options.peers {
        let ends = match peer {
            Peer::Udp | Peer::Tcp | Peer::Zmq | Peer::Xdp | Peer::Uring => {
                ends("rivals-network", None)
            }
            Peer::Nats => ends("rivals-network", Some(built.join("nats-server"))),
            Peer::Aeron => ends("rivals-aeron", None),
            Peer::Zenoh => ends("rivals-zenoh", None),
            // These hand over within one host only.
            _ => continue,
        };
        add_all(found, &peer.name(), ends.of(Some(*peer), built, &hosts));
    }
    Ok(())
}

fn add_all<S: Side + 'static>(found: &mut Present, name: &str, sides: Result<Vec<S>>) {
    match sides {
        Err(error) => found.1.push((name.to_owned(), format!("{error:#}"))),
        Ok(sides) if sides.is_empty() => found.1.push((name.to_owned(), "not built".into())),
        Ok(sides) => sides.into_iter().for_each(|side| add(found, name, Ok(side))),
    }
}

fn add<S: Side + 'static>(found: &mut Present, name: &str, side: Result<S>) {
    match side {
        Ok(side) => {
            println!("{} {}", side.name(), side.version());
            found.0.push(Box::new(side));
        }
        Err(error) => found.1.push((name.to_owned(), format!("{error:#}"))),
    }
}

/// lanecast's version; where it takes no part, that of this program.
fn product_version(sides: &[Box<dyn Side>]) -> String {
    let own = sides.iter().find(|side| side.name() == "lanecast");
    own.map_or_else(|| env!("CARGO_PKG_VERSION").to_owned(), |side| side.version())
}

fn own_folder() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    own.parent().map(Path::to_owned).context("this program lies nowhere")
}
