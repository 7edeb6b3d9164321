//! Runs one turn: a ping and a pong as processes of their own, over bare sockets or a transport, in
//! this host's network or in two namespaces.

use super::arguments::LatArgs;
use super::lat_run::{LatRun, Target, VethPath};
use crate::child::{ChildProcess, Deadline};
use crate::output::warn;
use crate::perf::bare::Address;
use crate::perf::namespaces::{INTERFACE, Network, address};
use crate::perf::store_process::{StoreArguments, StoreProcess};
use crate::perf::transport_name::TransportName;
use crate::temp_domain::TempDomain;
use anyhow::{Context as _, bail};
use lanecast_base::{WaitStrategy, format_duration};
use lanecast_measure::persistent::PersistMode;
use lanecast_measure::ping::Reference;
use lanecast_measure::smx::Skipped;
use lanecast_measure::socket_baseline::{Role, SocketKind};
use lanecast_measure::{Head, Kind};
use serde_json::Value;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Constant part of a run's limit, added to its expected time.
const SLACK: Duration = Duration::from_secs(20);
/// Factor on the expected time of a run that gives its limit.
const SLOWNESS: u32 = 10;
/// Bare sockets need no more to warm up: 20 ms at the document's rate, and one at a low rate.
const BARE_WARM_UP: u64 = 1000;
const BARE_WARM_UPS_PER_SECOND: u64 = 50;
/// Fewest CPUs for a ping with two threads, as in the document.
const TWO_THREADS_FROM: usize = 3;

/// Length of packets between namespaces: that of any Ethernet.
const MTU: u32 = 1500;
/// The namespaces of the ping and of the pong.
const MEMBERS: [usize; 2] = [0, 1];

/// Name of the store.
const STORE: &str = "lat";

/// A measurement line, and whether every message came back.
type Measured = (String, bool);

/// A run of a ping and a pong.
#[derive(Clone, Copy, Debug)]
struct CarriedRun {
    transport: TransportName,
    mode: Option<PersistMode>,
    /// The path between namespaces; none for one in this host's network.
    veth: Option<VethPath>,
}

/// Runs the cases of a series.
#[derive(Debug)]
pub(super) struct Runner<'a> {
    head: Head,
    domain: TempDomain,
    arguments: &'a LatArgs,
    /// The ping's, the pong's, and the ping's second one; at least one.
    cpus: Vec<usize>,
    /// Two namespaces, once they are built.
    network: Option<Network>,
}

impl<'a> Runner<'a> {
    pub(super) fn new(
        head: Head,
        arguments: &'a LatArgs,
        cpus: Vec<usize>,
    ) -> anyhow::Result<Self> {
        if cpus.is_empty() {
            bail!("this process may use no CPU of its choice");
        }
        let domain = TempDomain::build("lat")?;
        Ok(Self { head, domain, arguments, cpus, network: None })
    }

    /// Makes the two namespaces of runs over veth.
    ///
    /// # Errors
    /// If the user is not root, or the system refuses.
    pub(super) fn build_network(&mut self) -> anyhow::Result<()> {
        self.network = Some(Network::pair(MTU)?);
        Ok(())
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
        let (deadline, wait) = (Deadline { until, stop }, lat_run.wait);
        let (transport, mode, veth) = match lat_run.target {
            Target::Bare(socket) => return self.bare(socket, false, wait, &deadline),
            Target::Veth(VethPath::Bare(socket)) => {
                return self.bare(socket, true, wait, &deadline);
            }
            Target::Transport(transport) => (transport, None, None),
            Target::StoreBacked(transport, mode) => (transport, Some(mode), None),
            Target::Veth(
                path @ (VethPath::Sockets(it) | VethPath::Warm(it) | VethPath::Xdp(it)),
            ) => (it, None, Some(path)),
        };
        let carried = CarriedRun { transport, mode, veth };
        let (lines, said) = self.carried(carried, wait, repetition, &deadline)?;
        for line in said.lines().filter(|line| !line.is_empty()) {
            warn(&format!("{lat_run}: {}", line.trim_start_matches("lanecast: ")));
        }
        let lines = lines.into_iter().map(|line| {
            let fell_back = line["io_fallback"].is_string() && self.arguments.wants_bypass();
            (line.to_string(), is_complete(&line) && !fell_back)
        });
        Ok(lines.collect())
    }

    /// The CPU of the pong: its own, if there are two.
    fn pong_cpu(&self) -> usize {
        *self.cpus.get(1).unwrap_or(&self.cpus[0])
    }

    /// Round trips over bare sockets, between two processes as those of a ping and a pong: of this
    /// host's network, or between the two namespaces.
    fn bare(
        &self,
        socket: SocketKind,
        is_over_veth: bool,
        wait: WaitStrategy,
        deadline: &Deadline<'_>,
    ) -> anyhow::Result<Vec<Measured>> {
        let start = |role: Role, name, member: usize| {
            let enter = if is_over_veth { self.network()?.enter(member) } else { Vec::new() };
            let at = if is_over_veth { address(member) } else { Ipv4Addr::LOCALHOST };
            ChildProcess::start_told(name, &enter, &self.bare_words(role, socket, wait, at))
        };
        let [near, far] = MEMBERS;
        let mut pong = start(Role::Pong, "bare pong", far)?;
        let mut ping = start(Role::Ping, "bare ping", near)?;
        let addresses: [Address; 2] = [ping.read(deadline)?, pong.read(deadline)?];
        pong.tell(&addresses[0])?;
        ping.tell(&addresses[1])?;
        let mut line: Value = ping.read(deadline)?;
        pong.end_input();
        line["receiver"] = pong.read(deadline)?;
        for actor in [ping, pong] {
            actor.finish(deadline)?;
        }
        line["command"] = self.head.command.clone().into();
        if is_over_veth {
            line["namespaces"] = true.into();
        }
        Ok(vec![(line.to_string(), line["lost"] == 0)])
    }

    fn network(&self) -> anyhow::Result<&Network> {
        self.network.as_ref().context("there are no namespaces")
    }

    fn bare_words(
        &self,
        role: Role,
        socket: SocketKind,
        wait: WaitStrategy,
        at: Ipv4Addr,
    ) -> Vec<String> {
        let arguments = self.arguments;
        let cpu = if role == Role::Ping { self.cpus[0] } else { self.pong_cpu() };
        let warmup = (arguments.rate / BARE_WARM_UPS_PER_SECOND).clamp(1, BARE_WARM_UP);
        let words = format!(
            "perf bare {} --own-session --socket {} --wait {} --address {at} -a {cpu} -m {} -n {} \
             -r {} -w {warmup}",
            role.name(),
            socket.name(),
            wait.name(),
            arguments.size,
            arguments.messages(),
            arguments.rate
        );
        words.split_whitespace().map(str::to_owned).collect()
    }

    /// The lines of a ping and its pong, and what both wrote to standard error.
    fn carried(
        &self,
        carried: CarriedRun,
        wait: WaitStrategy,
        repetition: u32,
        deadline: &Deadline<'_>,
    ) -> anyhow::Result<([Value; 2], String)> {
        let CarriedRun { transport, mode, veth } = carried;
        let mut common = self.common(carried, wait);
        if let Some(mode) = mode {
            common.extend(["-p", mode.name(), "--stores", STORE].map(str::to_owned));
        }
        // Dropping it kills the store and removes its data.
        let _store = mode.map(|_| self.store(transport)).transpose()?;
        let start = |role, member: usize, words: Vec<String>| {
            let enter = veth.map(|_| Ok::<_, anyhow::Error>(self.network()?.enter(member)));
            let enter = enter.transpose()?.unwrap_or_default();
            ChildProcess::start_in(role, &enter, &[words, common.clone()].concat())
        };
        let [near, far] = MEMBERS;
        // Between threads, the ping's process has the pong, too.
        let mut pong = match transport {
            TransportName::Thread => None,
            _ => Some(start("pong", far, self.pong())?),
        };
        let mut ping = start("ping", near, self.ping(transport))?;
        let mut there: Value = ping.read(deadline)?;
        let mut back: Value = pong.as_mut().unwrap_or(&mut ping).read(deadline)?;
        let mut said = String::new();
        for actor in [Some(ping), pong].into_iter().flatten() {
            said += &actor.finish(deadline)?;
            said += "\n";
        }
        let arguments = self.arguments;
        there["repetition"] = repetition.into();
        there["repetitions"] = arguments.repetitions.into();
        there["reference"] = serde_json::to_value(Reference::of(arguments.size, arguments.rate))?;
        if there["io_fallback"].is_null()
            && let Some(reason) = back["io_fallback"].as_str()
        {
            // Half of each round trip went by sockets.
            there["io_fallback"] = format!("at the pong, {reason}").into();
        }
        for line in [&mut there, &mut back] {
            // One command has made all of them.
            line["command"] = self.head.command.clone().into();
            if veth.is_some() {
                line["namespaces"] = true.into();
            }
            if let Some(interval) = self.keeps_warm(veth) {
                line["keep_warm"] = interval.into();
            }
        }
        Ok(([there, back], said))
    }

    /// A store for one run.
    fn store(&self, transport: TransportName) -> anyhow::Result<StoreProcess> {
        let arguments = self.arguments;
        let store = StoreArguments {
            transport,
            domain: self.domain.path("domain"),
            config: &arguments.config,
            interface: arguments.interface.as_deref(),
            io: Some("sockets"),
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

    /// Interval of the frames that keep the path warm, if they do.
    fn keeps_warm(&self, veth: Option<VethPath>) -> Option<String> {
        let is_warm = matches!(veth, Some(VethPath::Warm(_)));
        self.arguments.keep_warm.filter(|_| is_warm).map(format_duration)
    }

    fn common(&self, carried: CarriedRun, wait: WaitStrategy) -> Vec<String> {
        let CarriedRun { transport, veth, .. } = carried;
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
        let interface = veth.map_or(self.arguments.interface.as_deref(), |_| Some(INTERFACE));
        if let Some(interface) = interface {
            words.extend(["--interface", interface].map(str::to_owned));
        }
        // Datagrams of one host to itself never come to a card, whatever a file says.
        let io = veth.map_or("sockets", VethPath::io);
        words.extend(["--io", io].map(str::to_owned));
        if let Some(interval) = self.keeps_warm(veth) {
            words.extend(["--keep-warm".to_owned(), interval]);
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
