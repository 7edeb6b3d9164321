//! `lanecast perf bare`: one end of round trips over bare sockets, which `perf lat-report` starts
//! as it starts `perf ping` and `perf pong`, with the same CPU and the same priority.
//!
//! It prints its address as a line, reads the other end's as a line, and prints the result. Its
//! input stays open for as long as it is wanted: the pong ends with it.

use super::arguments::parse_cpu;
use super::priority::PriorityArgs;
use crate::output::print_line;
use anyhow::{Context as _, bail};
use lanecast_base::WaitStrategy;
use lanecast_base::clock::Clock;
use lanecast_measure::socket_baseline::{Case, Progress, Role, Settings, Side, SocketKind};
use lanecast_measure::{Head, Kind, Pinning, parse_number};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, ErrorKind, Read as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

/// Arguments of `perf bare`.
#[derive(Debug, clap::Args)]
pub(crate) struct BareArgs {
    role: Role,

    #[arg(long)]
    socket: SocketKind,

    #[arg(long)]
    wait: WaitStrategy,

    #[arg(long)]
    address: Ipv4Addr,

    #[arg(short = 'a', long, value_parser = parse_cpu, allow_negative_numbers = true)]
    cpu: i64,

    #[arg(short = 'm', long, value_parser = parse_number::<usize>)]
    size: usize,

    #[arg(short = 'n', long, value_parser = parse_number::<u64>)]
    messages: u64,

    #[arg(short = 'r', long, value_parser = parse_number::<u64>)]
    rate: u64,

    #[arg(short = 'w', long, value_parser = parse_number::<u64>)]
    warmup: u64,

    #[command(flatten)]
    priority: PriorityArgs,
}

/// The address of an end; none of one that calls the other.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Address {
    pub(super) address: Option<SocketAddr>,
}

pub(super) fn run(arguments: &BareArgs) -> anyhow::Result<ExitCode> {
    let head = Head::now();
    let place = Pinning::on_this_host(Some(arguments.cpu), 0)?;
    let settings = Settings {
        case: Case::round_trip(arguments.socket, arguments.wait),
        size: arguments.size,
        rate: arguments.rate,
        messages: arguments.messages,
        warmup: arguments.warmup,
        time: Duration::ZERO,
        datagram_bytes: 0,
        sender: place,
        receiver: place,
        raise: arguments.priority.apply()?,
        clock: Clock::host(),
    };
    let side = Side::open(&settings, arguments.role, arguments.address)?;
    let own = side.address().context("the socket has no address")?;
    print_line(&serde_json::to_string(&Address { address: own })?)?;
    let other = other()?;
    let progress = Arc::new(Progress::default());
    stop_with_input(&progress)?;
    let line = match arguments.role {
        Role::Ping => head.line(Kind::Baseline, &side.ping(&settings, other, &progress)?)?,
        Role::Pong => serde_json::to_string(&side.pong(&settings, other, &progress)?)?,
    };
    print_line(&line)?;
    Ok(ExitCode::SUCCESS)
}

/// The other end's address.
fn other() -> anyhow::Result<Option<SocketAddr>> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    if line.is_empty() {
        bail!("nothing came by standard input: perf lat-report starts this command");
    }
    let other: Address = serde_json::from_str(&line).context("this is no address")?;
    Ok(other.address)
}

/// Ends the case when the input does; the thread that waits for that sleeps.
fn stop_with_input(progress: &Arc<Progress>) -> anyhow::Result<()> {
    let progress = Arc::clone(progress);
    let wait = move || {
        let mut rest = [0; 64];
        loop {
            match std::io::stdin().lock().read(&mut rest) {
                Ok(1..) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return progress.stop(),
            }
        }
    };
    Builder::new().name("input".into()).spawn(wait).context("cannot start a thread")?;
    Ok(())
}
