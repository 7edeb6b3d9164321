//! Runs one turn: bare sockets here, or a ping and a pong as processes of their own.

use super::arguments::LatArgs;
use super::lat_run::{LatRun, Target};
use crate::child::{ChildProcess, Deadline, TempDomain};
use crate::perf::store_process::{StoreArguments, StoreProcess};
use crate::perf::transport_name::TransportName;
use anyhow::bail;
use lanecast_base::WaitStrategy;
use lanecast_base::clock::Clock;
use lanecast_measure::persistent::PersistMode;
use lanecast_measure::ping::Reference;
use lanecast_measure::smx::Skipped;
use lanecast_measure::socket_baseline::{self, Case, Settings, SocketKind};
use lanecast_measure::{Head, Kind, Pinning, PriorityChange};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Constant part of a run's limit, added to its expected time.
const SLACK: Duration = Duration::from_secs(20);
/// Factor on the expected time of a run that gives its limit.
const SLOWNESS: u32 = 10;
/// Bare sockets need no more to warm up.
const BARE_WARM_UP: u64 = 1000;
/// Fewest CPUs for a ping with two threads, as in the document.
const TWO_THREADS_FROM: usize = 3;

/// Name of the store.
const STORE: &str = "lat";

/// A measurement line, and whether every message came back.
type Measured = (String, bool);

/// Runs the cases of a series.
#[derive(Debug)]
pub(super) struct Runner<'a> {
    head: Head,
    domain: TempDomain,
    arguments: &'a LatArgs,
    /// The ping's, the pong's, and the ping's second one; at least one.
    cpus: Vec<usize>,
    raise: PriorityChange,
}

impl<'a> Runner<'a> {
    pub(super) fn new(
        head: Head,
        arguments: &'a LatArgs,
        cpus: Vec<usize>,
        raise: PriorityChange,
    ) -> anyhow::Result<Self> {
        if cpus.is_empty() {
            bail!("this process may use no CPU of its choice");
        }
        Ok(Self { head, domain: TempDomain::build("lat")?, arguments, cpus, raise })
    }

    /// The line of a turn that was not measured.
    pub(super) fn skipped(&self, why: String) -> anyhow::Result<String> {
        let skipped = Skipped { experiment: "round-trip", why };
        Ok(self.head.line(Kind::Skipped, &skipped)?)
    }

    /// Runs it; `stop` ends it early, as an error.
    pub(super) fn measure(
        &self,
        lat_run: &LatRun,
        repetition: u32,
        stop: &dyn Fn() -> bool,
    ) -> anyhow::Result<Vec<Measured>> {
        if self.cpus.len() < 2 && lat_run.wait == WaitStrategy::BusySpin {
            bail!("two threads that spin need two CPUs");
        }
        let until = Instant::now() + SLACK + self.arguments.expected().saturating_mul(SLOWNESS);
        match lat_run.target {
            Target::Bare(socket) => self.bare(socket, lat_run.wait, stop),
            Target::Transport(transport) => {
                self.carried((transport, None), lat_run.wait, repetition, &Deadline { until, stop })
            }
            Target::StoreBacked(transport, mode) => {
                let deadline = Deadline { until, stop };
                self.carried((transport, Some(mode)), lat_run.wait, repetition, &deadline)
            }
        }
    }

    /// The CPU of the pong: its own, if there are two.
    fn pong_cpu(&self) -> usize {
        *self.cpus.get(1).unwrap_or(&self.cpus[0])
    }

    fn bare(
        &self,
        socket: SocketKind,
        wait: WaitStrategy,
        stop: &dyn Fn() -> bool,
    ) -> anyhow::Result<Vec<Measured>> {
        let place = |cpu: usize| Pinning::on_this_host(i64::try_from(cpu).ok(), 0);
        let settings = Settings {
            case: Case::round_trip(socket, wait),
            size: self.arguments.size,
            rate: self.arguments.rate,
            messages: self.arguments.messages(),
            warmup: BARE_WARM_UP.min(self.arguments.messages()),
            time: Duration::ZERO,
            datagram_bytes: 0,
            sender: place(self.cpus[0])?,
            receiver: place(self.pong_cpu())?,
            raise: self.raise,
            clock: Clock::host(),
        };
        let result = socket_baseline::run(&settings, stop)?;
        Ok(vec![(self.head.line(Kind::Baseline, &result)?, result.is_complete())])
    }

    fn carried(
        &self,
        (transport, mode): (TransportName, Option<PersistMode>),
        wait: WaitStrategy,
        repetition: u32,
        deadline: &Deadline<'_>,
    ) -> anyhow::Result<Vec<Measured>> {
        let mut common = self.common(transport, wait);
        if let Some(mode) = mode {
            common.extend(["-p", mode.name(), "--stores", STORE].map(str::to_owned));
        }
        // Dropping it kills the store and removes its data.
        let _store = mode.map(|_| self.store(transport)).transpose()?;
        let start =
            |role, words: Vec<String>| ChildProcess::start(role, &[words, common.clone()].concat());
        // Between threads, the ping's process has the pong, too.
        let mut pong = match transport {
            TransportName::Thread => None,
            _ => Some(start("pong", self.pong())?),
        };
        let mut ping = start("ping", self.ping(transport))?;
        let mut there: Value = ping.read(deadline)?;
        let back: Value = pong.as_mut().unwrap_or(&mut ping).read(deadline)?;
        for actor in [Some(ping), pong].into_iter().flatten() {
            actor.finish(deadline)?;
        }
        let arguments = self.arguments;
        there["repetition"] = repetition.into();
        there["repetitions"] = arguments.repetitions.into();
        there["reference"] = serde_json::to_value(Reference::of(arguments.size, arguments.rate))?;
        let line = |mut line: Value| {
            // One command has made all of them.
            line["command"] = self.head.command.clone().into();
            let is_complete = is_complete(&line);
            (line.to_string(), is_complete)
        };
        Ok(vec![line(there), line(back)])
    }

    /// A store for one run.
    fn store(&self, transport: TransportName) -> anyhow::Result<StoreProcess> {
        let arguments = self.arguments;
        let store = StoreArguments {
            transport,
            domain: self.domain.path("domain"),
            config: &arguments.config,
            interface: arguments.interface.as_deref(),
            io: arguments.io.as_deref(),
            cpu: None,
        };
        StoreProcess::start(STORE, &store, arguments.store_data.as_deref())
    }

    fn ping(&self, transport: TransportName) -> Vec<String> {
        let arguments = self.arguments;
        let option = |name: &str, value: String| [name.to_owned(), value];
        let mut words = vec!["perf".to_owned(), "ping".to_owned()];
        let warmup = format!("{},{}", arguments.warmup.loops, arguments.warmup.rate);
        words.extend(
            [
                option("-m", arguments.size.to_string()),
                option("-n", arguments.messages().to_string()),
                option("-r", arguments.rate.to_string()),
                option("-w", warmup),
                option("-H", arguments.histogram.to_string()),
                option("-A", self.cpus[0].to_string()),
            ]
            .concat(),
        );
        match self.cpus.get(TWO_THREADS_FROM - 1) {
            Some(cpu) => words.extend(option("-a", cpu.to_string())),
            None => words.push("--one-thread".to_owned()),
        }
        if transport == TransportName::Thread {
            words.extend(option("--pong-cpu", self.pong_cpu().to_string()));
        }
        words
    }

    fn pong(&self) -> Vec<String> {
        let cpu = self.pong_cpu().to_string();
        ["perf", "pong", "-E", "-a", &cpu].map(str::to_owned).to_vec()
    }

    fn common(&self, transport: TransportName, wait: WaitStrategy) -> Vec<String> {
        let directory = self.domain.path("domain").to_string_lossy().into_owned();
        let mut words = vec!["--json", "--own-session", "--wait", wait.name()];
        words.extend(["--transport", transport.name(), "--directory", &directory]);
        let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        for file in &self.arguments.config {
            words.extend(["-c".to_owned(), file.to_string_lossy().into_owned()]);
        }
        let process = std::process::id();
        // Others on this network may measure as well.
        words.extend(["--topics".to_owned(), format!("lat{process}.there,lat{process}.back")]);
        if let Some(interface) = &self.arguments.interface {
            words.extend(["--interface".to_owned(), interface.clone()]);
        }
        if let Some(io) = &self.arguments.io {
            words.extend(["--io".to_owned(), io.clone()]);
        }
        if let Some(window) = self.arguments.window {
            words.extend(["--window".to_owned(), window.to_string()]);
        }
        words
    }
}

/// Whether nothing went wrong on this side, as far as its line tells.
fn is_complete(line: &Value) -> bool {
    let is_none = |name: &str| line[name].as_u64().unwrap_or(0) == 0;
    let answered = line.get("answered").is_none_or(|answered| *answered == line["received"]);
    let came_back = line.get("sent").and_then(Value::as_u64).is_none_or(|sent| {
        line["received"].as_u64() == Some(sent + line["warmup"].as_u64().unwrap_or(0))
    });
    let is_stable = line["persistence"]["left_in_flight"].as_u64().unwrap_or(0) == 0;
    let is_whole = ["reported_lost", "duplicated", "damaged"].into_iter().all(is_none);
    is_whole && answered && came_back && is_stable
}
