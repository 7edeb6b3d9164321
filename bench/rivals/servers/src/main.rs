//! Measures servers in turn, and prints their figures side by side.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use clap::Parser;
use lanecast_measure::fanout::{Bursts, Commands, FanoutResult, Load, Wanted, over_sockets};
use rivals_servers::{Nats, Redis};

/// lanecast's server beside NATS and Redis, over TCP on loopback.
#[derive(Debug, Parser)]
struct Arguments {
    /// As `run.sh` has it; says nothing here
    #[arg(long, hide = true)]
    servers: bool,

    /// Which servers
    #[arg(long, value_delimiter = ',', default_value = "lanecast,nats,redis")]
    peers: Vec<String>,

    /// Messages each subscriber wants: all, or quarter
    #[arg(long, value_delimiter = ',', default_value = "all,quarter")]
    wanted: Vec<Wanted>,

    /// Number of publishers
    #[arg(long, value_delimiter = ',', default_value = "1")]
    publishers: Vec<usize>,

    /// Number of subscribers
    #[arg(long, default_value_t = 50)]
    subscribers: usize,

    /// Messages of a burst of all; of quarter there are ten times as many
    #[arg(long, default_value_t = 100_000)]
    burst: u64,

    /// Bursts of one repetition
    #[arg(long, default_value_t = 3)]
    bursts: usize,

    /// Repetitions, interleaved
    #[arg(long, default_value_t = 5)]
    pairs: usize,

    /// The CPU of servers with one thread, and the one of the clients; without, nothing is pinned
    #[arg(long, value_delimiter = ',')]
    cpus: Vec<usize>,

    /// The program lanecast
    #[arg(long)]
    lanecast: PathBuf,

    /// A line of JSON for each repetition instead of the table
    #[arg(long)]
    json: bool,
}

/// A running server, which ends with this value.
struct Served {
    child: Child,
    at: SocketAddr,
}

impl Drop for Served {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() -> ExitCode {
    rivals_kit::ending(run(Arguments::parse()).map(|()| ExitCode::SUCCESS))
}

fn run(mut arguments: Arguments) -> Result<()> {
    arguments.peers.retain(|peer| match program(&arguments.lanecast, peer) {
        Some(_) => true,
        None => {
            eprintln!("{peer} is left out: {}", missing(peer));
            false
        }
    });
    let arguments = arguments;
    if arguments.publishers.contains(&0) || arguments.subscribers == 0 || arguments.burst == 0 {
        bail!("there must be publishers, subscribers and messages");
    }
    for wanted in &arguments.wanted {
        for publishers in &arguments.publishers {
            arguments.compare(*wanted, *publishers)?;
        }
    }
    Ok(())
}

impl Arguments {
    fn compare(&self, wanted: Wanted, publishers: usize) -> Result<()> {
        let load = Load { wanted, subscribers: self.subscribers };
        let messages = if wanted == Wanted::All { self.burst } else { 10 * self.burst };
        let bursts = Bursts { publishers, count: self.bursts, messages };
        let mut results: Vec<Vec<FanoutResult>> = vec![Vec::new(); self.peers.len()];
        for _ in 0..self.pairs {
            for (peer, results) in self.peers.iter().zip(&mut results) {
                let result = self.measure(peer, &load, bursts)?;
                if self.json {
                    println!("{}", serde_json::to_string(&result)?);
                }
                results.push(result);
            }
        }
        if !self.json {
            println!("{publishers} → {}, wanted: {wanted}", self.subscribers);
            println!(
                "  server     in/s min / median / max    delivered/s median    lost   of lanecast"
            );
            let own = results.first().map_or(0.0, |results| middle(results));
            for (peer, results) in self.peers.iter().zip(&results) {
                show(peer, results, own);
            }
        }
        Ok(())
    }

    fn measure(&self, peer: &str, load: &Load, bursts: Bursts) -> Result<FanoutResult> {
        let served = self.start(peer)?;
        let clients = self.cpus.get(1..).unwrap_or_default();
        let cpus = [clients, clients];
        let result = match peer {
            "nats" => over_sockets(&Nats, served.at, load, bursts, cpus),
            "redis" => over_sockets(&Redis, served.at, load, bursts, cpus),
            _ => over_sockets(&Commands, served.at, load, bursts, cpus),
        };
        result.with_context(|| format!("{peer} and its clients do not get on"))
    }

    fn start(&self, peer: &str) -> Result<Served> {
        let program = program(&self.lanecast, peer).with_context(|| missing(peer))?;
        // Free until another process takes the port.
        let at = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let port = at.port().to_string();
        let mut command = match self.cpus.first() {
            // NATS has as many threads as it likes, and gets both CPUs.
            Some(cpu) if peer != "nats" => {
                let mut command = Command::new("taskset");
                command.arg("-c").arg(cpu.to_string()).arg(program);
                command
            }
            _ => Command::new(program),
        };
        match peer {
            "nats" => command.args(["-a", "127.0.0.1", "-p", &port]),
            // Kept nowhere; subscribers may be as far behind as they like.
            "redis" => command.args(["--bind", "127.0.0.1", "--port", &port, "--save", ""]).args([
                "--appendonly",
                "no",
                "--client-output-buffer-limit",
                "pubsub 0 0 0",
            ]),
            _ => command.args(["serve", "--listen", &at.to_string()]),
        };
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
        Ok(Served { child: child.spawn().with_context(|| format!("cannot start {peer}"))?, at })
    }
}

/// Path of a server's program.
fn program(lanecast: &std::path::Path, peer: &str) -> Option<PathBuf> {
    let beside = std::env::current_exe().ok()?.with_file_name("nats-server");
    match peer {
        "lanecast" => Some(lanecast.to_owned()).filter(|path| path.is_file()),
        "nats" => Some(beside).filter(|path| path.is_file()),
        "redis" => {
            let path = std::env::var_os("PATH")?;
            let names = ["redis-server", "valkey-server"];
            let places =
                std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
            places.into_iter().find(|path| path.is_file())
        }
        _ => None,
    }
}

fn missing(peer: &str) -> &'static str {
    match peer {
        "lanecast" => "its program is not built",
        "nats" => "its server is not built: run.sh --servers builds it where there is Go",
        "redis" => "apt-get install redis-server, or valkey-server",
        _ => "choose of lanecast, nats, redis",
    }
}

fn middle(results: &[FanoutResult]) -> f64 {
    rates(results).get(results.len() / 2).copied().unwrap_or(0.0)
}

fn rates(results: &[FanoutResult]) -> Vec<f64> {
    let mut rates: Vec<f64> = results.iter().map(|result| result.published_per_second).collect();
    rates.sort_by(f64::total_cmp);
    rates
}

fn show(peer: &str, results: &[FanoutResult], own: f64) {
    let (all, median) = (rates(results), middle(results));
    let (Some(least), Some(most), Some(first)) = (all.first(), all.last(), results.first()) else {
        return;
    };
    let each = first.expected as f64 / (first.bursts.count as u64 * first.bursts.messages) as f64;
    let lost: u64 = results.iter().map(|result| result.lost).sum();
    println!(
        "  {peer:<9} {least:>9.0} / {median:>9.0} / {most:>9.0} {:>18.0} {lost:>10} {:>10.2}×",
        median * each,
        own / median,
    );
}
