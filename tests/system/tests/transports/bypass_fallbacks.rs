//! Reasons why datagrams go by sockets although they were to pass the kernel's stack by (AF_XDP).

use crate::play::{PATIENT, check_whole, publisher};
use anyhow::{Context, Result, ensure};
use lanecast_net::{IoKind, NetSettings, Network as LanecastNetwork};
use lanecast_os::interface::interfaces;
use lanecast_os::xdp::{QUEUE_BYTES, XdpDevice, XdpError, XdpOptions};
use lanecast_system_tests::{Actor, Host, Network, possible, without};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Longer than any command takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// The limit of locked memory on most systems.
const COMMON_LIMIT: u64 = 8 << 20;

/// Opens a network at `interface` on this thread's host; the reason for sockets.
fn fallback(interface: &str, change: impl FnOnce(&mut NetSettings)) -> Result<Option<String>> {
    let mut settings =
        NetSettings { interface: interface.to_owned(), io: IoKind::Xdp, ..NetSettings::default() };
    change(&mut settings);
    let network = LanecastNetwork::open(settings)?;
    ensure!(network.io_fallback().is_some() != network.xdp_mode().is_some(), "both, or neither");
    Ok(network.io_fallback().map(str::to_owned))
}

/// The reason is told, and has `part`.
fn check(reason: Option<String>, part: &str) -> Result<()> {
    let reason = reason.with_context(|| format!("no fallback, but: {part}"))?;
    ensure!(reason.contains(part), "{reason}");
    ensure!(!reason.contains('\n'), "several lines: {reason}");
    Ok(())
}

#[test]
fn each_missing_right_is_told() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::pair()?;
    let host = net.host(0);
    host.inside(|| {
        ensure!(fallback(host.interface(), |_| {})?.is_none(), "with all rights");
        let all = CapabilitySet::SYS_ADMIN;
        for missing in [CapabilitySet::BPF, CapabilitySet::NET_RAW, CapabilitySet::NET_ADMIN] {
            let reason = without(missing | all, || fallback(host.interface(), |_| {}))??;
            check(reason, "give it CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_IPC_LOCK")
                .with_context(|| format!("{missing:?}"))?;
        }
        Ok(())
    })?
}

fn open(host: &Host) -> Result<Result<Arc<XdpDevice>, XdpError>> {
    let address = IpAddr::from(host.v4());
    let mut interfaces = interfaces()?.into_iter();
    let interface = interfaces.find(|it| it.addresses.iter().any(|(ip, _)| *ip == address));
    let interface = interface.context("no interface has the address")?;
    Ok(XdpDevice::open(&interface, 1_400, XdpOptions::default()))
}

/// The kernel locks the frames' memory, which is more than most systems let a process lock.
#[test]
fn memory_for_frames_needs_a_right_or_a_limit() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::pair()?;
    let host = net.host(0);
    // Other tests of this process have CAP_IPC_LOCK, and no limit counts for them.
    let before = getrlimit(Resource::Memlock);
    let limit = |bytes| {
        let maximum = before.maximum.map(|most| most.max(bytes));
        setrlimit(Resource::Memlock, Rlimit { current: Some(bytes), maximum })
    };
    host.inside(|| {
        limit(COMMON_LIMIT)?;
        let refused = without(CapabilitySet::IPC_LOCK, || open(host))??;
        let Err(error @ XdpError::LockedMemory { bytes, .. }) = &refused else {
            anyhow::bail!("not refused for its memory: {refused:?}");
        };
        ensure!(*bytes == QUEUE_BYTES, "{bytes}");
        for part in ["12582912 bytes", "CAP_IPC_LOCK", "`ulimit -l 12288`"] {
            ensure!(error.to_string().contains(part), "{error}");
        }
        let reason = without(CapabilitySet::IPC_LOCK, || fallback(host.interface(), |_| {}))??;
        check(reason, "CAP_IPC_LOCK")?;
        // Either of the two is enough.
        ensure!(open(host)?.is_ok(), "with the right");
        match limit(64 << 20) {
            Ok(()) => {
                let opened = without(CapabilitySet::IPC_LOCK, || open(host))??;
                ensure!(opened.is_ok(), "with the limit: {opened:?}");
            }
            // A root without CAP_SYS_RESOURCE, as in containers, raises no limit of its own.
            Err(Errno::PERM) => println!("SKIPPED: a limit of locked memory beyond {before:?}"),
            Err(error) => return Err(error.into()),
        }
        setrlimit(Resource::Memlock, before)?;
        Ok(())
    })?
}

#[test]
fn long_datagrams_and_ipv6_go_by_sockets() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::pair()?;
    net.set_mtu(9_000)?;
    let host = net.host(0);
    host.inside(|| {
        let long = fallback(host.interface(), |settings| settings.datagram_bytes = Some(8_000))?;
        check(long, "datagrams of 8000 bytes do not fit")?;
        let ipv6 = |settings: &mut NetSettings| {
            settings.group = "[ff05::4c43]:14401".parse().expect("an address");
            settings.resolver_group = None;
        };
        check(fallback(&host.v6().to_string(), ipv6)?, "IPv4 only")
    })?
}

/// A tunnel has no Ethernet, and so no frames for AF_XDP.
#[test]
fn an_interface_without_ethernet_goes_by_sockets() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::pair()?;
    let host = net.host(0);
    let made = host.run("ip", &["tuntap", "add", "dev", "tun0", "mode", "tun"], LIMIT)?;
    if made.code != Some(0) {
        println!("SKIPPED: no tunnels here: {}", made.err);
        return Ok(());
    }
    for words in ["addr add 10.88.0.1/24 dev tun0", "link set tun0 up"] {
        let words: Vec<&str> = words.split(' ').collect();
        ensure!(host.run("ip", &words, LIMIT)?.code == Some(0), "{words:?}");
    }
    host.inside(|| check(fallback("tun0", |_| {})?, "the driver of tun0"))?
}

/// An end that has fallen back carries on, and the other end passes its stack by.
#[test]
fn messages_go_on_after_a_fallback() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::pair()?;
    let (here, there) = (net.host(0), net.host(1));
    for transport in ["rm", "ru"] {
        let words = format!("{PATIENT} io=xdp count=2000 subscribers=1");
        let mut source = publisher(here, transport, &words)?;
        let role = format!("subscribe {PATIENT} io=xdp");
        // A program of root has all rights that the thread that starts it may give away.
        let mut reader = std::thread::scope(|scope| {
            let start = || {
                remove_capability_from_bounding_set(CapabilitySet::NET_RAW)?;
                Actor::start(there, &role)
            };
            scope.spawn(start).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        let io = reader.tells("io")?;
        ensure!(io.starts_with("sockets, because the process may not load"), "{io}");
        source.tells("reached")?;
        source.end()?;
        check_whole(&reader.parts()?, 2_000)?;
        ensure!(!there.has_program()?, "a program has stayed");
        reader.finish()?;
        source.finish()?;
    }
    Ok(())
}
