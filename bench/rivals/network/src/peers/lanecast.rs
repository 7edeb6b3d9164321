//! lanecast's transports between hosts, with their default settings.

use std::net::{Ipv4Addr, SocketAddr};

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

/// An end over one of the transports.
///
/// # Errors
///
/// What the transport reports.
pub fn end(kind: TransportKind, load: &Load, place: &Place) -> Result<Topics<NetTransport>> {
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
        ..NetSettings::default()
    };
    let transport = NetTransport::new(Network::open(settings)?, kind);
    Topics::new(&transport, place.role, load.subscribers, sleeps(load))
}
