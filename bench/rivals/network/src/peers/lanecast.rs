//! lanecast's transports between hosts: with their default settings, with parity, with a key, or
//! past the kernel's stack.

use std::fs::{File, Permissions};
use std::io::{Error, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use lanecast_base::WaitStrategy;
use lanecast_net::{IoKind, NetSettings, NetTransport, Network, TransportKind};
use rivals_kit::{Load, Wait};

use super::transport::Topics;
use crate::end::sleeps;
use crate::place::Place;

/// Multicast groups reserved for these runs; the ports tell repetitions apart.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 77, 2, 1);
const RESOLVERS: Ipv4Addr = Ipv4Addr::new(239, 77, 2, 3);

/// The key of all runs: nothing is secret in them.
const KEY: &str = "6c616e65636173746c616e65636173746c616e65636173746c616e6563617374";

/// An end over the transport of a peer's name: `lanecast-ru`; with parity `lanecast-ru-fec`, with a
/// key `lanecast-ru-key`, past the kernel's stack `lanecast-ru-xdp`.
///
/// # Errors
///
/// What the transport reports; also when it takes sockets in place of what was asked for.
pub fn end(peer: &str, load: &Load, place: &Place) -> Result<Topics<NetTransport>> {
    let mut words = peer.split('-').skip(1);
    let kind = match words.next() {
        Some("tcp") => TransportKind::Tcp,
        Some("rm") => TransportKind::Rm,
        Some("ru") => TransportKind::Ru,
        _ => bail!("no peer {peer}: see rivals-network list"),
    };
    let option = words.next();
    let wait = match load.wait {
        Wait::Spin => WaitStrategy::BusySpin,
        Wait::Yield => WaitStrategy::SpinYield,
        Wait::Block => WaitStrategy::Park,
    };
    // On loopback the hosts are addresses that no interface has by itself.
    let interface = if place.is_loopback() { Ipv4Addr::LOCALHOST } else { place.local };
    let settings = NetSettings {
        interface: interface.to_string(),
        group: SocketAddr::from((GROUP, place.port + 2)),
        resolver_group: Some(SocketAddr::from((RESOLVERS, place.port + 3))),
        publisher_wait: wait,
        subscriber_wait: wait,
        // The delay is the interval of messages there and back: blocks are full by then.
        fec: (option == Some("fec")).then_some((2, 1)),
        fec_delay: Duration::from_micros(20),
        key_file: if option == Some("key") { Some(key_file()?) } else { None },
        io: if option == Some("xdp") { IoKind::Xdp } else { IoKind::Sockets },
        ..NetSettings::default()
    };
    let network = Network::open(settings)?;
    if let Some(why) = network.io_fallback() {
        bail!("no AF_XDP here: {why}");
    }
    let transport = NetTransport::new(network, kind);
    Topics::new(&transport, place.role, load.subscribers, sleeps(load))
}

/// A file with the key, in memory: a program that is killed leaves nothing behind.
fn key_file() -> Result<PathBuf> {
    // SAFETY: the name ends with a zero; it only makes a descriptor.
    let fd = unsafe { libc::memfd_create(c"key".as_ptr(), libc::MFD_CLOEXEC) };
    ensure!(fd >= 0, Error::last_os_error());
    // SAFETY: the descriptor is new, and nothing else has it.
    let mut file = unsafe { File::from_raw_fd(fd) };
    file.set_permissions(Permissions::from_mode(0o600))?;
    writeln!(file, "{KEY}")?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // The transport reads it again now and then, as long as the program lives.
    let _ = file.into_raw_fd();
    Ok(path.into())
}
