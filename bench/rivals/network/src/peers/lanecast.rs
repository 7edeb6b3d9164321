//! lanecast's transports between hosts, with their default settings, or with parity.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Result;
use lanecast_base::WaitStrategy;
use lanecast_net::{NetSettings, NetTransport, Network, TransportKind};
use rivals_kit::{Load, Wait};

use super::transport::Topics;
use crate::end::sleeps;
use crate::place::Place;

/// Multicast groups reserved for these runs; the ports tell repetitions apart.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 77, 2, 1);
const RESOLVERS: Ipv4Addr = Ipv4Addr::new(239, 77, 2, 3);

/// An end over the transport of a peer's name: `lanecast-ru`, or with parity `lanecast-ru-fec`.
///
/// # Errors
///
/// What the transport reports.
pub fn end(peer: &str, load: &Load, place: &Place) -> Result<Topics<NetTransport>> {
    let kind = match peer {
        "lanecast-tcp" => TransportKind::Tcp,
        "lanecast-rm" | "lanecast-rm-fec" => TransportKind::Rm,
        _ => TransportKind::Ru,
    };
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
        fec: peer.ends_with("-fec").then_some((2, 1)),
        fec_delay: Duration::from_micros(20),
        ..NetSettings::default()
    };
    let transport = NetTransport::new(Network::open(settings)?, kind);
    Topics::new(&transport, place.role, load.subscribers, sleeps(load))
}
