//! One host of a network.

use crate::loss::{self, Loss};
use crate::namespace::Namespace;
use crate::process::{self, Done, Process};
use anyhow::{Context, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The name of every host's interface.
pub(crate) const INTERFACE: &str = "eth0";

/// Traffic that a host has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Packets; one of segmented datagrams counts once.
    pub packets: u64,
    /// Bytes, with all headers.
    pub bytes: u64,
}

impl Sent {
    /// Traffic since then.
    #[must_use]
    pub const fn since(self, then: Self) -> Self {
        Self { packets: self.packets - then.packets, bytes: self.bytes - then.bytes }
    }
}

/// One host: a network namespace with an interface `eth0` and two addresses.
#[derive(Debug)]
pub struct Host {
    namespace: Namespace,
    number: u8,
}

impl Host {
    pub(crate) fn new(number: u8) -> Result<Self> {
        Ok(Self { namespace: Namespace::new()?, number })
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Brings the interface up, with its addresses and a route for multicast. May be repeated.
    pub(crate) fn configure(&self) -> Result<()> {
        let (v4, v6) = (self.v4(), self.v6());
        self.namespace.ip(&format!(
            "link set {INTERFACE} up\n\
             addr replace {v4}/24 dev {INTERFACE}\n\
             addr replace {v6}/64 dev {INTERFACE} nodad\n\
             route replace 224.0.0.0/4 dev {INTERFACE}\n"
        ))
    }

    /// The name of its namespace, for `ip netns exec`.
    pub fn name(&self) -> &str {
        self.namespace.name()
    }

    /// The name of its interface.
    pub fn interface(&self) -> &'static str {
        INTERFACE
    }

    /// The IPv4 address: 10.77.0.1 for the first host of every network.
    pub fn v4(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, self.number)
    }

    /// The IPv6 address: fd77::1 for the first host of every network.
    pub fn v6(&self) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, self.number.into())
    }

    /// Both addresses.
    pub fn addresses(&self) -> [IpAddr; 2] {
        [self.v4().into(), self.v6().into()]
    }

    /// A command that runs on this host. A program that cargo has built is found by its bare name,
    /// others in PATH.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.name()]).arg(process::find(program));
        command
    }

    /// Starts a program on this host; it is killed when dropped.
    pub fn spawn(&self, program: &str, arguments: &[&str]) -> Result<Process> {
        let mut command = self.command(program);
        command.args(arguments);
        Process::start(command, Stdio::null())
    }

    /// Runs a program on this host to its end, which must come within `limit`.
    pub fn run(&self, program: &str, arguments: &[&str], limit: Duration) -> Result<Done> {
        self.spawn(program, arguments)?.finish(limit)
    }

    /// Calls `work` on a thread of this host. Sockets that it opens belong to this host for good,
    /// on any thread.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        self.namespace.inside(work)
    }

    /// Loses this much of what comes in, in place of what was lost before; counts from 0 again.
    pub fn lose(&self, loss: &Loss) -> Result<()> {
        self.namespace.nft(&loss.rule(INTERFACE)).map(drop)
    }

    /// Loses nothing any more.
    pub fn lose_nothing(&self) -> Result<()> {
        self.lose(&Loss::per_million(0))
    }

    /// Whether a program is attached to its interface (XDP).
    pub fn has_program(&self) -> Result<bool> {
        let link = ["-n", self.name(), "-details", "link", "show", INTERFACE];
        Ok(crate::tool::run("ip", &link, "")?.contains("xdp"))
    }

    /// Traffic that it has sent by its interface so far.
    pub fn sent(&self) -> Result<Sent> {
        let text = self.inside(|| std::fs::read_to_string("/proc/thread-self/net/dev"))??;
        let mut lines = text.lines().map(str::trim);
        let line = lines.find_map(|line| line.strip_prefix(INTERFACE)?.strip_prefix(':'));
        // Eight columns of what came, then those of what was sent.
        let words = line.context("no interface")?.split_whitespace().skip(8);
        let mut words = words.map(str::parse::<u64>);
        let mut next = || words.next().context("a column is missing")?.context("no number");
        Ok(Sent { bytes: next()?, packets: next()? })
    }

    /// Runs an nftables script here; what it prints.
    pub fn nft(&self, script: &str) -> Result<String> {
        self.namespace.nft(script)
    }

    /// Packets lost here since the last call of [`lose`](Self::lose).
    pub fn lost(&self) -> Result<u64> {
        loss::count(&self.namespace.nft(loss::ASK)?)
    }
}
