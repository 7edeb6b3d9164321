//! The sides, and the command lines of their members.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use lanecast_system_tests::Network;
use serde::Serialize;

use crate::member::Ordering;

/// JVM options of the source document, where they still exist.
const JVM: [&str; 5] =
    ["-server", "-Xms400M", "-Xmx600M", "-XX:+UseParallelGC", "-Djava.net.preferIPv4Stack=true"];

/// Headers of an IPv4 packet in front of a datagram.
const IP_UDP_BYTES: u32 = 28;
/// Room in a datagram beside a frame of a group.
const FRAME_IN_DATAGRAM_BYTES: u32 = 128;

/// A peer of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Peer {
    /// lanecast's groups
    Lanecast,
    /// JGroups, with the stacks that it ships
    Jgroups,
    /// Corosync, by libcpg
    Corosync,
}

/// A measured side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// lanecast over reliable multicast.
    LanecastRm,
    /// lanecast over TCP.
    LanecastTcp,
    /// `lanecast perf group` over reliable multicast.
    PerfRm,
    /// `lanecast perf group` over TCP.
    PerfTcp,
    /// JGroups with its `udp.xml`.
    JgroupsUdp,
    /// JGroups with its `tcp.xml`.
    JgroupsTcp,
    /// Corosync over knet, its default, in agreed order.
    Corosync,
}

impl Side {
    /// Name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LanecastRm => "lanecast rm",
            Self::LanecastTcp => "lanecast tcp",
            Self::PerfRm => "perf group rm",
            Self::PerfTcp => "perf group tcp",
            Self::JgroupsUdp => "jgroups udp",
            Self::JgroupsTcp => "jgroups tcp",
            Self::Corosync => "corosync",
        }
    }

    /// The peer that it belongs to.
    pub const fn peer(self) -> Peer {
        match self {
            Self::JgroupsUdp | Self::JgroupsTcp => Peer::Jgroups,
            Self::Corosync => Peer::Corosync,
            _ => Peer::Lanecast,
        }
    }

    /// Whether its members are `lanecast perf group`, with arguments and output of their own.
    pub const fn is_tool(self) -> bool {
        matches!(self, Self::PerfRm | Self::PerfTcp)
    }

    const fn transport(self) -> &'static str {
        match self {
            Self::LanecastTcp | Self::PerfTcp => "tcp",
            _ => "rm",
        }
    }
}

/// The load of one repetition.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// The side.
    pub side: Side,
    /// Order of delivery.
    pub order: Ordering,
    /// Members.
    pub members: usize,
    /// Bytes of a message.
    pub size: usize,
    /// Per cent of packets that every member loses on arrival.
    pub loss: u32,
    /// Whether no packet is longer than 1500 bytes, as on a cable.
    pub frames: bool,
    /// Longest packet in bytes, if not 1500.
    pub mtu: Option<u32>,
    /// Milliseconds in which members send before the clock starts.
    pub warm_ms: u64,
    /// Milliseconds in which members send.
    pub send_ms: u64,
    /// Messages a second and member; 0: flat out.
    pub rate: u64,
    /// Round trips in place of messages to all.
    pub rounds: u64,
    /// Round trips before the clock starts.
    pub warm_rounds: u64,
    /// Whether the whole content of every message is written and checked, or its last word.
    pub whole: bool,
    /// lanecast's waiting strategy, if not its default.
    pub wait: Option<&'static str>,
    /// Signal to one of the members.
    pub fault: Option<Fault>,
    /// Milliseconds after which a member gives up.
    pub limit_ms: u64,
}

/// A signal to the last member, or to the first one, some milliseconds after the clock's start.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// SIGKILL.
    Kill(u64),
    /// SIGSTOP.
    Stop(u64),
}

impl Fault {
    /// Time from the start of the clock to the signal.
    pub const fn after(self) -> Duration {
        match self {
            Self::Kill(ms) | Self::Stop(ms) => Duration::from_millis(ms),
        }
    }
}

/// The places of the programs.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `lanecast`.
    pub lanecast: PathBuf,
    /// Folder of the Java classes and their jars.
    pub java: PathBuf,
    /// Corosync's member, and the script of its hosts.
    pub corosync: (PathBuf, PathBuf),
    /// CPUs.
    pub cpus: Vec<usize>,
    /// Whether every member has one CPU of its own, in turn, or all members share all.
    pub pins_each: bool,
    /// Whether all that members print is shown.
    pub is_verbose: bool,
}

impl Programs {
    /// The reason why a peer cannot take part.
    pub fn missing(&self, peer: Peer) -> Option<&'static str> {
        match peer {
            Peer::Lanecast if self.lanecast.is_file() => None,
            Peer::Lanecast => Some("its program is not built"),
            Peer::Jgroups if self.java.join("classes/lanecast/rivals/jgroups").is_dir() => None,
            Peer::Jgroups => {
                Some("not built: apt-get install default-jdk-headless maven, and Maven Central")
            }
            Peer::Corosync if self.corosync.0.is_file() && is_installed("corosync") => None,
            Peer::Corosync => Some("apt-get install corosync libcpg-dev, and a C compiler"),
        }
    }

    /// Program and arguments of member `index`, to be run on its host.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn command(
        &self,
        case: &Case,
        index: usize,
        network: &Network,
        folder: &Path,
        messages: u64,
    ) -> Result<Vec<String>> {
        let host = network.host(index);
        let mut words = self.placement(index);
        words.extend(["ip", "netns", "exec", host.name()].map(str::to_owned));
        if case.side.is_tool() {
            // The interface's MTU says nothing about the rest of a path: longer datagrams are asked
            // for.
            words.extend(case.mtu.into_iter().flat_map(|mtu| {
                let datagram = mtu - IP_UDP_BYTES;
                let frame = datagram - FRAME_IN_DATAGRAM_BYTES;
                [
                    "env".to_owned(),
                    format!("LANECAST_NET__DATAGRAM={datagram}"),
                    format!("LANECAST_GROUP__LONGEST_FRAME={frame}"),
                ]
            }));
            words.push(shown(&self.lanecast));
            words.extend(["perf", "group", "--json", "--sender"].map(str::to_owned));
            words.extend(["--name".into(), format!("m{index}"), "--directory".into()]);
            words.push(shown(&folder.join("domain")));
            words.extend([
                format!("transport=group-{}", case.side.transport()),
                format!("num_members={}", case.members),
                format!("msg_size={}", case.size),
                format!("num_msgs={messages}"),
                format!("warmup={}", messages * case.warm_ms / case.send_ms.max(1)),
                format!("log_interval={}", (messages * case.members as u64 / 20).max(1)),
                format!("bind_addr={}", host.interface()),
            ]);
            return Ok(words);
        }
        match case.side.peer() {
            Peer::Lanecast => {
                let own = std::env::current_exe().context("cannot find this program's own file")?;
                words.extend([shown(&own), "member".into()]);
                words.extend(["--transport".into(), case.side.transport().into()]);
                words.extend(["--interface".into(), host.interface().into()]);
                words.extend(["--directory".into(), shown(&folder.join("domain"))]);
                let order = if case.order == Ordering::Total { "total" } else { "fifo" };
                words.extend(["--order".into(), order.into()]);
                words.extend(case.wait.into_iter().flat_map(|it| ["--wait".into(), it.into()]));
            }
            Peer::Jgroups => {
                words.push("java".into());
                words.extend(JVM.map(str::to_owned));
                let all: Vec<String> =
                    network.hosts().iter().map(|host| format!("{}[7800]", host.v4())).collect();
                words.extend([
                    format!("-Djgroups.bind_addr={}", host.v4()),
                    format!("-Djgroups.tcpping.initial_hosts={}", all.join(",")),
                    "-cp".into(),
                    format!("{0}/classes:{0}/lib/*", self.java.display()),
                    "lanecast.rivals.jgroups.Member".into(),
                    "--stack".into(),
                ]);
                let is_tcp = case.side == Side::JgroupsTcp;
                words.push(if is_tcp { "tcp.xml" } else { "udp.xml" }.into());
            }
            Peer::Corosync => {
                let path = folder.join(format!("corosync{index}.conf"));
                fs::write(&path, corosync(network))?;
                words.extend(["unshare", "-m", "sh"].map(str::to_owned));
                words.extend([shown(&self.corosync.1), shown(&path), shown(&self.corosync.0)]);
            }
        }
        let options = [
            ("--index", index as u64),
            ("--members", case.members as u64),
            ("--size", case.size as u64),
            ("--warm-ms", case.warm_ms),
            ("--warm-rounds", case.warm_rounds),
            ("--whole", u64::from(case.whole)),
            ("--send-ms", case.send_ms),
            ("--rate", case.rate),
            ("--rounds", case.rounds),
            ("--limit-ms", case.limit_ms),
        ];
        words.extend(options.into_iter().flat_map(|(name, it)| [name.into(), it.to_string()]));
        Ok(words)
    }

    /// The same rule for all sides.
    fn placement(&self, index: usize) -> Vec<String> {
        let cpus: Vec<String> = match (self.pins_each, self.cpus.len()) {
            (_, 0) => return Vec::new(),
            (true, count) => vec![self.cpus[index % count].to_string()],
            (false, _) => self.cpus.iter().map(usize::to_string).collect(),
        };
        ["taskset".into(), "-c".into(), cpus.join(",")].to_vec()
    }
}

/// Configuration of Corosync's daemon: the members' addresses, and its defaults, knet without
/// encryption among them.
fn corosync(network: &Network) -> String {
    let mut text = "totem {\n version: 2\n cluster_name: rivals\n}\nquorum {\n}\n\
                    logging {\n to_stderr: yes\n to_syslog: no\n}\nnodelist {\n"
        .to_owned();
    for (number, host) in (1..).zip(network.hosts()) {
        text += &format!(
            " node {{\n  ring0_addr: {}\n  nodeid: {number}\n  name: m{number}\n }}\n",
            host.v4()
        );
    }
    text + "}\n"
}

fn is_installed(program: &str) -> bool {
    ["/usr/sbin", "/usr/local/sbin"].iter().any(|folder| Path::new(folder).join(program).is_file())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
