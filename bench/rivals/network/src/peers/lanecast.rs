//! lanecast's carriers between hosts, with their default settings.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use lanecast_base::WaitStrategy;
use lanecast_net::{Kind, NetCarrier, Network, Settings};
use rivals_kit::{Load, Wait};

use super::carrier::Topics;
use crate::end::sleeps;
use crate::place::Place;

/// Groups that nobody else on this network uses; the ports tell repetitions apart.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 77, 2, 1);
const RESOLVERS: Ipv4Addr = Ipv4Addr::new(239, 77, 2, 3);

/// An end over one of the carriers.
///
/// # Errors
///
/// What the carrier reports.
pub fn end(kind: Kind, load: &Load, place: &Place) -> Result<Topics<NetCarrier>> {
    let wait = match load.wait {
        Wait::Spin => WaitStrategy::BusySpin,
        Wait::Yield => WaitStrategy::SpinYield,
        Wait::Block => WaitStrategy::Park,
    };
    // On loopback the hosts are addresses that no interface has by itself.
    let interface = if place.is_loopback() { Ipv4Addr::LOCALHOST } else { place.local };
    let settings = Settings {
        interface: interface.to_string(),
        group: SocketAddr::from((GROUP, place.port + 2)),
        resolver_group: Some(SocketAddr::from((RESOLVERS, place.port + 3))),
        publisher_wait: wait,
        subscriber_wait: wait,
        ..Settings::default()
    };
    let carrier = NetCarrier::new(Network::open(settings)?, kind);
    Topics::new(&carrier, place.role, load.subscribers, sleeps(load))
}
