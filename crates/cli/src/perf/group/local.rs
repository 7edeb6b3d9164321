//! All members of a group test on this machine, a process each.

use super::arguments::GroupArgs;
use super::carrier::{self, Carrier};
use super::member;
use crate::child::{ChildProcess, Deadline};
use crate::output::warn;
use crate::perf::namespaces::{self, INTERFACE, Network};
use crate::temp_domain::TempDomain;
use crate::usage::refuse;
use anyhow::Context;
use lanecast_base::sync::{AtomicBool, Ordering};
use lanecast_measure::Head;
use lanecast_measure::group::{GroupConfig, TransportKind};
use lanecast_os::tcp::ReservedPort;
use lanecast_os::udp::{UdpOptions, UdpSocket};
use serde_json::Value;
use std::env;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// The longest run: members end by themselves much earlier, unless they make progress.
const LONGEST: Duration = Duration::from_secs(4 * 3600);
/// Between two looks at the stop flag while threads run.
const LOOK: Duration = Duration::from_millis(20);
/// Settings of the longest datagram and frame, and the packets that they suit without being set.
const DATAGRAM: &str = "LANECAST_NET__DATAGRAM";
const FRAME: &str = "LANECAST_GROUP__LONGEST_FRAME";
const COMMON_MTU: u32 = 1500;
/// Headers of IPv4 and UDP.
const IP_UDP_BYTES: u32 = 28;
/// The longest datagram that can be set.
const DATAGRAM_MAX: u32 = 65_000;
/// Room in a datagram beside a frame of a group, with encryption too.
const FRAME_IN_DATAGRAM_BYTES: u32 = 128;
/// Port of every member of `tcp` that has an address of its own.
const PORT: u16 = 7800;

/// Runs the members that `--local` asks for; the measurement line of the first one.
pub(super) fn run(
    arguments: &GroupArgs,
    config: &GroupConfig,
    head: &Head,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<Value> {
    let members = arguments.local.local.unwrap_or(config.num_members);
    check_local(config, members)?;
    if arguments.file.is_some() || arguments.stay || arguments.sender || arguments.receiver {
        refuse!("-f, --stay, --sender and --receiver are for one member: leave out --local");
    }
    let hosts = &arguments.local.hosts;
    if config.transport == TransportKind::GroupThreads {
        if hosts.namespaces {
            refuse!("--namespaces: threads of one process have no networks of their own");
        }
        return threads(arguments, config, head, stop);
    }
    let mut words = Vec::new();
    if let Some(path) = &arguments.config {
        words.extend(["--config".to_owned(), path.display().to_string()]);
    }
    words.extend(arguments.overrides());
    if arguments.dump_stats {
        words.push("--dump-stats".to_owned());
    }
    let time = |name: &str, time: Duration| [name.to_owned(), format!("{}ms", time.as_millis())];
    words.extend(time("--join-timeout", arguments.join_timeout));
    words.extend(time("--patience", arguments.patience));
    let mut line = measure(config, &words, hosts.namespaces.then_some(hosts.mtu), stop)?;
    line["command"] = head.command.clone().into();
    Ok(line)
}

/// Runs all members as threads of this process; the measurement line of the first one.
fn threads(
    arguments: &GroupArgs,
    config: &GroupConfig,
    head: &Head,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<Value> {
    let (domain, is_over) = (TempDomain::build("group")?, AtomicBool::new(false));
    let arguments =
        GroupArgs { directory: Some(domain.path("domain")), json: true, ..arguments.clone() };
    let context = carrier::context(&arguments, config)?;
    let lines = std::thread::scope(|scope| {
        let (context, is_over) = (&context, &is_over);
        let members = (0..config.num_members).map(|member| {
            let own = GroupArgs {
                name: Some(format!("m{}", member + 1)),
                sender: member < config.num_senders,
                receiver: member >= config.num_senders,
                ..arguments.clone()
            };
            scope.spawn(move || {
                let transport = Carrier::join(context, &own, &member::name(&own))?;
                member::over(transport, &own, config, head, &|| is_over.load(Ordering::Relaxed))
            })
        });
        let members: Vec<_> = members.collect();
        while members.iter().any(|member| !member.is_finished()) {
            is_over.fetch_or(stop(), Ordering::Relaxed);
            std::thread::sleep(LOOK);
        }
        let ended = members.into_iter().map(|member| {
            member.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a member panicked")))
        });
        ended.collect::<anyhow::Result<Vec<Value>>>()
    })?;
    one_of(lines)
}

/// The first of the members' lines, complete if all of them are.
fn one_of(mut lines: Vec<Value>) -> anyhow::Result<Value> {
    let first = lines.first().context("a group has a member")?;
    if lines.iter().any(|line| line["results"] != first["results"]) {
        warn("the members' tables differ: not all of them got all results");
    }
    // One member may not have seen what happened to another.
    let is_complete = lines.iter().all(|line| line["complete"] == true);
    let mut line = lines.swap_remove(0);
    line["complete"] = is_complete.into();
    line["namespaces"] = false.into();
    line["mtu"] = Value::Null;
    Ok(line)
}

/// Runs all members of `config`, which `words` repeat; over namespaces with packets of `mtu` bytes,
/// if there is an `mtu`.
pub(super) fn measure(
    config: &GroupConfig,
    words: &[String],
    mtu: Option<u32>,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<Value> {
    let members = config.num_members;
    let network = mtu.map(|mtu| Network::build(members, mtu)).transpose()?;
    let domain = TempDomain::build("group")?;
    let ports: std::io::Result<Vec<_>> = match config.transport {
        TransportKind::Tcp if config.cluster.is_empty() && network.is_none() => {
            (0..members).map(|_| ReservedPort::take(Ipv4Addr::LOCALHOST.into())).collect()
        }
        _ => Ok(Vec::new()),
    };
    // Held until the members have ended: no other program, and no connection of a member that
    // starts before the others, can take one.
    let ports = ports.context("no ports for the members")?;
    let mut common = common(config, words, network.is_some(), &ports, &domain)?;
    // Others on this machine may run the same test. Held, too, beside the members' sockets.
    let group_port = (config.transport == TransportKind::Udp && network.is_none()).then(|| {
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        UdpSocket::open(&UdpOptions { local, shared: true, ..UdpOptions::default() })
    });
    let group_port = group_port.transpose().context("no port for the members' group")?;
    if let Some(socket) = &group_port {
        common.push(format!("mcast_port={}", socket.local_address()?.port()));
    }
    let deadline = Deadline { until: Instant::now() + LONGEST, stop };
    // Dropped before the network: the members end first.
    let mut actors = Vec::new();
    for member in 0..members {
        let mut own = common.clone();
        let role = if member < config.num_senders { "--sender" } else { "--receiver" };
        own.extend([role.to_owned(), "--name".to_owned(), format!("m{}", member + 1)]);
        if network.is_some() && config.transport == TransportKind::Udp {
            own.push(format!("bind_addr={}", namespaces::address(member)));
        }
        let mut enter = network.as_ref().map(|network| network.enter(member)).unwrap_or_default();
        enter.extend(mtu.and_then(|mtu| jumbo(config, mtu)).into_iter().flatten());
        actors.push(ChildProcess::start_in("member", &enter, &own)?);
    }
    let mut lines: Vec<Value> = Vec::new();
    for actor in &mut actors {
        lines.push(actor.read(&deadline)?);
    }
    for actor in actors {
        let said = actor.finish(&deadline)?;
        said.lines().for_each(|line| warn(line.trim_start_matches("lanecast: ")));
    }
    let mut line = one_of(lines)?;
    line["namespaces"] = network.is_some().into();
    line["mtu"] = mtu.into();
    Ok(line)
}

/// Words before a command that let frames and datagrams be as long as packets of `mtu` bytes: an
/// interface's MTU says nothing about the rest of a path, so that lanecast does not follow it by
/// itself. None if the user has set the transport up.
fn jumbo(config: &GroupConfig, mtu: u32) -> Option<[String; 3]> {
    let is_set =
        config.props.is_some() || [DATAGRAM, FRAME].iter().any(|it| env::var_os(it).is_some());
    let is_longer = mtu > COMMON_MTU && !is_set;
    is_longer.then(|| {
        let datagram = (mtu - IP_UDP_BYTES).min(DATAGRAM_MAX);
        let frame = format!("{FRAME}={}", datagram - FRAME_IN_DATAGRAM_BYTES);
        ["env".to_owned(), format!("{DATAGRAM}={datagram}"), frame]
    })
}

/// Arguments of all members.
fn common(
    config: &GroupConfig,
    words: &[String],
    has_hosts: bool,
    ports: &[ReservedPort],
    domain: &TempDomain,
) -> anyhow::Result<Vec<String>> {
    let mut common: Vec<String> =
        ["perf", "group", "--own-session", "--json"].map(str::to_owned).to_vec();
    common.extend(words.iter().cloned());
    common.push(format!("num_members={}", config.num_members));
    match config.transport {
        TransportKind::Tcp if config.cluster.is_empty() => {
            let addresses: Vec<String> = match has_hosts {
                true => (0..config.num_members)
                    .map(|member| SocketAddr::from((namespaces::address(member), PORT)).to_string())
                    .collect(),
                false => ports.iter().map(|port| port.address().to_string()).collect(),
            };
            common.push(format!("cluster={}", addresses.join(",")));
        }
        TransportKind::Udp | TransportKind::Tcp => {}
        _ => {
            let directory = domain.path("domain").display().to_string();
            let group = format!("perf-{}", std::process::id());
            common.extend(["--directory".to_owned(), directory, "--group".to_owned(), group]);
            if has_hosts {
                common.push(format!("bind_addr={INTERFACE}"));
            }
        }
    }
    Ok(common)
}

/// Refuses settings that contradict `--local`.
fn check_local(config: &GroupConfig, members: usize) -> anyhow::Result<()> {
    if config.num_members != members {
        refuse!("--local {members} and num_members={} differ", config.num_members);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_packets_bring_long_frames_unless_the_user_sets_them() {
        let config = |props: &[&str]| {
            let words = ["transport=group-rm", "num_msgs=1", "num_members=2"];
            let words: Vec<String> =
                words.iter().chain(props).map(|word| (*word).to_owned()).collect();
            GroupConfig::read("a test", "", &words, None).unwrap()
        };
        let frame = "LANECAST_GROUP__LONGEST_FRAME=8844";
        let long = ["env", "LANECAST_NET__DATAGRAM=8972", frame].map(str::to_owned);
        assert_eq!(jumbo(&config(&[]), 9000), Some(long));
        assert_eq!(jumbo(&config(&[]), 1500), None);
        assert!(jumbo(&config(&[]), 65_535).unwrap()[1].ends_with("=65000"));
        assert_eq!(jumbo(&config(&["props=own.toml"]), 9000), None);
    }
}
