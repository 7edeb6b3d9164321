//! Measures stores in turn, and prints their figures side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use rivals_stores::{Figures, JetStream, Load, OwnStores, measure};
use serde_json::json;

/// Time without progress after which a side has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Three stores of lanecast beside three servers of NATS JetStream: kept and synchronised at two of
/// three before a message counts.
#[derive(Debug, Parser)]
struct Arguments {
    /// As `run.sh` has it; says nothing here
    #[arg(long, hide = true)]
    stores: bool,

    /// Sides to measure
    #[arg(long, value_delimiter = ',', default_value = "lanecast,nats")]
    peers: Vec<String>,

    /// Length of each message in bytes
    #[arg(long, default_value_t = 100)]
    size: usize,

    /// Most unconfirmed messages
    #[arg(long, default_value_t = 512)]
    window: u64,

    /// Messages with that window
    #[arg(long, default_value_t = 200_000)]
    messages: u64,

    /// Messages one at a time
    #[arg(long, default_value_t = 2_000)]
    singles: u64,

    /// Repetitions, interleaved
    #[arg(long, default_value_t = 5)]
    pairs: usize,

    /// Few messages, once: does it work?
    #[arg(long)]
    smoke: bool,

    /// Directory on the disk in question; what is made in it is removed
    #[arg(long, default_value = "/var/tmp")]
    data: PathBuf,

    /// A setting of lanecast's publisher and stores, such as transports=tcp; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// The program lanecast
    #[arg(long)]
    lanecast: PathBuf,

    /// A line of JSON for each repetition instead of the table
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    rivals_kit::ending(run(Arguments::parse()).map(|()| ExitCode::SUCCESS))
}

fn run(mut arguments: Arguments) -> Result<()> {
    if arguments.smoke {
        (arguments.messages, arguments.singles, arguments.pairs) = (2_000, 20, 1);
    }
    let nats = nats_server();
    for peer in &arguments.peers {
        match peer.as_str() {
            "lanecast" | "nats" => {}
            _ => bail!("--peers {peer}: choose of lanecast, nats"),
        }
    }
    if nats.is_none() && arguments.peers.iter().any(|it| it == "nats") {
        eprintln!("nats is left out: run.sh --stores builds its server where there is Go");
        arguments.peers.retain(|it| it != "nats");
    }
    let Arguments { size, window, messages, singles, pairs, .. } = arguments;
    if size == 0 || window == 0 || messages == 0 || singles == 0 || pairs == 0 {
        bail!("there must be messages, a window and repetitions");
    }
    let load = Load { size, window, messages, singles };
    let mut results: Vec<Vec<Figures>> = vec![Vec::new(); arguments.peers.len()];
    for _ in 0..pairs {
        for (peer, results) in arguments.peers.iter().zip(&mut results) {
            let figures = arguments.measure(peer, nats.as_deref(), load);
            let figures = figures.with_context(|| format!("{peer} failed"))?;
            if arguments.json {
                println!(
                    "{}",
                    json!({"peer": peer, "size": size, "window": window, "figures": figures})
                );
            }
            results.push(figures);
        }
    }
    if !arguments.json {
        show(&arguments, &results);
    }
    Ok(())
}

impl Arguments {
    fn measure(&self, peer: &str, nats: Option<&Path>, load: Load) -> Result<Figures> {
        let data = tempfile::Builder::new().prefix("rivals-stores").tempdir_in(&self.data)?;
        match nats.filter(|_| peer == "nats") {
            Some(nats) => {
                let mut side = JetStream::start(nats, data.path(), PATIENCE)?;
                measure(&mut side, load, PATIENCE)
            }
            None => {
                let (lanecast, settings) = (&self.lanecast, self.set.as_slice());
                let mut side = OwnStores::start(lanecast, data.path(), settings, load, PATIENCE)?;
                measure(&mut side, load, PATIENCE)
            }
        }
    }
}

/// Path of NATS' server, beside this program.
fn nats_server() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok()?.with_file_name("nats-server");
    Some(beside).filter(|path| path.is_file())
}

fn show(arguments: &Arguments, results: &[Vec<Figures>]) {
    let Arguments { size, window, messages, singles, pairs, .. } = arguments;
    println!(
        "3 stores, {size} bytes, kept and synchronised at 2 of 3, {pairs} repetitions in turn"
    );
    println!("window of {window}, {messages} messages; then {singles} one at a time\n");
    println!(
        "  stores      messages/s min / median / max    one at a time: p50 µs (range), p99 µs"
    );
    let median = |figures: &[Figures], value: fn(&Figures) -> f64| {
        let mut values: Vec<f64> = figures.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(0.0);
        (at(0), at(values.len() / 2), at(values.len().saturating_sub(1)))
    };
    let rate = |figures: &[Figures]| median(figures, |it| it.messages_per_second);
    let p50 = |figures: &[Figures]| median(figures, |it| it.p50_ns as f64 / 1e3);
    for (peer, figures) in arguments.peers.iter().zip(results) {
        let (least, middle, most) = rate(figures);
        let (low, half, high) = p50(figures);
        let (_, p99, _) = median(figures, |it| it.p99_ns as f64 / 1e3);
        println!(
            "  {peer:<9} {least:>9.0} / {middle:>9.0} / {most:>9.0} \
             {half:>18.1} ({low:.1}..{high:.1}), {p99:.1}",
        );
    }
    if let [own, others @ ..] = results {
        for (peer, figures) in arguments.peers.iter().skip(1).zip(others) {
            let (rates, times) = (rate(own).1 / rate(figures).1, p50(own).1 / p50(figures).1);
            let first = &arguments.peers[0];
            println!("  {first}/{peer}: {rates:.2}× the messages/s, {times:.2}× the time of one");
        }
    }
}
