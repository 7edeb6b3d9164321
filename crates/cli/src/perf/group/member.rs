//! One member of a group test, over the transport of its configuration.

use super::arguments::GroupArgs;
use super::carrier::{self, Carrier};
use crate::output::{print_error, print_line, warn};
use crate::table::{counted, grouped, rate};
use crate::usage::refuse;
use anyhow::Context;
use lanecast_measure::group::{
    GroupConfig, GroupReference, GroupResult, GroupTransport, IntervalSample, Member,
    MemberSettings, Progress, TcpTransport, TransportKind, UdpTransport,
};
use lanecast_measure::{Head, Kind};
use serde::Serialize;
use serde_json::Value;
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};

/// First port of the members of `tcp`, unless `cluster` names them.
const FIRST_PORT: u16 = 7800;

/// A run, as its line has it.
#[derive(Debug, Serialize)]
struct Measured<'a> {
    #[serde(flatten)]
    result: &'a GroupResult,
    /// Whether every member received everything once and in order.
    complete: bool,
    /// The member whose intervals and statistics follow.
    name: &'a str,
    intervals: &'a [IntervalSample],
    stats: Option<Vec<Counter>>,
    reference: Option<GroupReference>,
}

/// A counter of `-dump_stats`.
#[derive(Debug, Serialize)]
struct Counter {
    name: String,
    value: u64,
}

/// Runs a member; the measurement line.
pub(super) fn run(
    arguments: &GroupArgs,
    config: &GroupConfig,
    head: &Head,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<Value> {
    let name = name(arguments);
    let is_bare = matches!(config.transport, TransportKind::Udp | TransportKind::Tcp);
    if is_bare && let Some(props) = &config.props {
        let props = crate::printable::printable(props);
        print_error(&format!("props: {} has no use for {props}", config.transport));
    }
    match config.transport {
        TransportKind::Udp => {
            let transport = UdpTransport::open(config.interface(), config.multicast)?;
            over(transport, arguments, config, head, stop)
        }
        TransportKind::Tcp => {
            over(TcpTransport::open(&cluster(config)?)?, arguments, config, head, stop)
        }
        TransportKind::GroupThreads => {
            refuse!("group-threads is for the threads of one process: use --local COUNT")
        }
        _ => {
            let context = carrier::context(arguments, config)?;
            let transport = Carrier::join(&context, arguments, &name)?;
            over(transport, arguments, config, head, stop)
        }
    }
}

/// The member's name in the tables.
pub(super) fn name(arguments: &GroupArgs) -> String {
    arguments.name.clone().unwrap_or_else(|| format!("process {}", std::process::id()))
}

/// The addresses of all members of `tcp`.
fn cluster(config: &GroupConfig) -> anyhow::Result<Vec<SocketAddr>> {
    if !config.cluster.is_empty() {
        return Ok(config.cluster.clone());
    }
    let own: IpAddr = config.interface().parse().with_context(|| {
        let given = config.interface();
        format!("bind_addr={given}: tcp needs an address, or cluster=ADDRESS:PORT,...")
    })?;
    let ports = FIRST_PORT..=u16::MAX;
    Ok(ports.take(config.num_members).map(|port| SocketAddr::new(own, port)).collect())
}

/// Runs a member over a transport; the measurement line.
pub(super) fn over(
    transport: impl GroupTransport,
    arguments: &GroupArgs,
    config: &GroupConfig,
    head: &Head,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<Value> {
    let settings = MemberSettings {
        id: lanecast_os::process::random()?,
        name: name(arguments),
        is_sender: arguments.is_sender(config),
        join_timeout: arguments.join_timeout,
        patience: arguments.patience,
    };
    let samples = SampleFile::open(arguments)?;
    let mut member = Member::new(config, &settings, transport)?;
    let failure = RefCell::new(None);
    let is_over = || stop() || failure.borrow().is_some();
    let outcome = member.run(&is_over, &mut |progress| {
        if let Err(error) = tell(&progress, arguments, &samples) {
            *failure.borrow_mut() = Some(error);
        }
    });
    if let Some(error) = failure.into_inner() {
        return Err(error);
    }
    let result = outcome?;
    let stats = arguments.dump_stats.then(|| stats(&result, &settings, member.counters()));
    let measured = Measured {
        complete: result.is_complete(),
        name: &settings.name,
        intervals: member.samples(),
        stats,
        reference: GroupReference::of(config.transport, config.num_members, config.msg_size),
        result: &result,
    };
    let line = serde_json::from_str(&head.line(Kind::Group, &measured)?)?;
    if arguments.stay {
        print_error(&super::table::shown(&line));
        print_error("staying in the group until Ctrl-C: see lanecast top, lanecast stat");
        member.stay(stop)?;
    }
    Ok(line)
}

/// The transport's counters and this member's waits, by name.
fn stats(
    result: &GroupResult,
    settings: &MemberSettings,
    counters: Vec<(String, u64)>,
) -> Vec<Counter> {
    let id = format!("{:016x}", settings.id);
    let own = result.results.iter().find(|member| member.id == id);
    let own = own.into_iter().flat_map(|member| {
        [
            ("messages sent", member.sent),
            ("sends that were blocked", member.blocked.count),
            ("time blocked, ns", member.blocked.ns),
            ("CPU time, ns", member.cpu_ns),
        ]
    });
    let own = own.map(|(name, value)| (name.to_owned(), value));
    own.chain(counters).map(|(name, value)| Counter { name, value }).collect()
}

/// The file of `-f`.
#[derive(Debug)]
struct SampleFile(Option<RefCell<File>>);

impl SampleFile {
    fn open(arguments: &GroupArgs) -> anyhow::Result<Self> {
        let Some(path) = &arguments.file else { return Ok(Self(None)) };
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let file = Self(Some(RefCell::new(file)));
        file.line(IntervalSample::COLUMNS)?;
        Ok(file)
    }

    /// Appends a line, so that it can be followed while the test runs.
    fn line(&self, text: &str) -> anyhow::Result<()> {
        let Some(file) = &self.0 else { return Ok(()) };
        writeln!(file.borrow_mut(), "{text}").context("the file of -f")
    }
}

/// Prints what happens, and writes the samples.
fn tell(
    progress: &Progress<'_>,
    arguments: &GroupArgs,
    samples: &SampleFile,
) -> anyhow::Result<()> {
    let is_shown = !arguments.json;
    let shown = |name: &str| crate::printable::printable(name);
    match progress {
        Progress::Received(sample) => {
            samples.line(&sample.to_string())?;
            if is_shown {
                print_line(&format!(
                    "-- received {} ({:.0} ms, {}, {:.2} MB/s)",
                    counted(sample.count, "message"),
                    sample.elapsed_ns as f64 / 1e6,
                    rate(sample.rate),
                    sample.bytes_per_second / 1e6
                ))?;
            }
        }
        Progress::Sent(count) if is_shown => print_line(&format!("++ sent {}", grouped(*count)))?,
        Progress::Found { name, here, wanted } if arguments.verbose => {
            print_error(&format!("{} is here: {here} of {wanted} members", shown(name)));
        }
        Progress::Started if arguments.verbose => print_error("all members are here: starting"),
        Progress::Finished(_) if arguments.verbose => {
            print_error("waiting for the others' results")
        }
        Progress::Gone { name, why } => warn(&format!("{} {}", shown(name), shown(why))),
        Progress::Stranger(name) => {
            warn(&format!("{} is not of this test: the group has all its members", shown(name)));
        }
        _ => {}
    }
    Ok(())
}
