//! The server of a fan-out run, in a process of its own.

use super::cpu::cpu_of;
use crate::child::{ChildProcess, Deadline};
use crate::output::print_json;
use crate::perf::priority;
use anyhow::Context;
use lanecast_broker::{Latency, Server, ServerConfig};
use lanecast_measure::fanout::{Bursts, Commands, FanoutResult, Load, over_sockets};
use lanecast_measure::{NumaPlacement, PriorityChange, PriorityRequest};
use lanecast_os::affinity;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Longest delay until an end is noticed.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(20);

/// Address on which the server listens.
#[derive(Debug, Serialize, Deserialize)]
struct Address {
    address: SocketAddr,
}

/// Report of the server at its end.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ServerReport {
    published: u64,
    delivered: u64,
    command_latency: Percentiles,
    turn_latency: Percentiles,
    cpu: Option<usize>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Percentiles {
    p50_ns: u64,
    p99_ns: u64,
    samples: u64,
}

impl From<Latency> for Percentiles {
    fn from(delay: Latency) -> Self {
        Self { p50_ns: delay.p50_ns, p99_ns: delay.p99_ns, samples: delay.samples }
    }
}

/// Serves until all who came have gone.
pub(super) fn serve(cpu: Option<usize>, stop: &dyn Fn() -> bool) -> anyhow::Result<ExitCode> {
    priority::leave_session()?;
    PriorityChange::by(PriorityRequest::Auto);
    // What it allocates from here on lies on that CPU's node.
    cpu.map_or(Ok(()), affinity::pin).context("cannot keep the server on its CPU")?;
    let mut server = Server::open(ServerConfig::at((Ipv4Addr::LOCALHOST, 0).into()))?;
    let address = server.address().context("cannot look at a socket")?;
    print_json(&Address { address })?;
    let (mut has_begun, mut is_over) = (false, false);
    while !stop() && !is_over {
        server.turn(CHECK_INTERVAL).context("cannot wait for clients")?;
        is_over = has_begun && server.clients() == 0;
        has_begun |= server.clients() > 0;
    }
    let done = server.counters();
    print_json(&ServerReport {
        published: done.published,
        delivered: done.delivered,
        command_latency: server.command_latency().into(),
        turn_latency: server.turn_latency().into(),
        cpu,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Publishes through a server that is started for it.
pub(super) fn run(
    load: &Load,
    bursts: Bursts,
    placement: &NumaPlacement,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<(FanoutResult, Option<ServerReport>)> {
    let deadline = || Deadline { until: Instant::now() + PATIENCE, stop };
    let [own, publishers, subscribers] = [0, 1, 2].map(|number| cpu_of(placement, number));
    let cpu = own.map_or("-1".to_owned(), |cpu| cpu.to_string());
    let words = ["perf", "fanout", &format!("--serve={cpu}")].map(str::to_owned);
    let mut server = ChildProcess::start("server", &words)?;
    let Address { address } = server.read(&deadline())?;
    let cpus = [publishers.as_slice(), subscribers.as_slice()];
    let result = over_sockets(&Commands, address, load, bursts, cpus)
        .context("the server and its clients do not get on")?;
    let told = server.read(&deadline())?;
    server.finish(&deadline())?;
    Ok((result, Some(told)))
}
