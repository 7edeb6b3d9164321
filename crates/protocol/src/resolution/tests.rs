//! Resolvers that talk to each other, and frames made by hand.

mod network;
mod pair;
mod patterns;
mod seeds;

use super::*;
use crate::MILLISECOND;
use crate::rng::Rng;
use lanecast_transport::TopicPattern;
use lanecast_wire::net::AdvertEntry;

const SESSION: u64 = 0x5e55;

/// The topics that any of `patterns` matches.
fn selection(patterns: &[&str], topics_max: usize) -> TopicSelection {
    let patterns = patterns.iter().map(|text| TopicPattern::wildcard(text).expect("a pattern"));
    TopicSelection::of_patterns(patterns.collect(), topics_max)
}

fn announcement(session: u64) -> Announcement {
    Announcement {
        session,
        transport: SessionTransport::Unicast,
        control: SocketAddr::from(([0, 0, 0, 0], 4_000)),
        group: None,
        host: 1,
        domain: 0,
        pid: 9,
        datagram_bytes: 1_472,
    }
}

fn resolver(id: u64, now: Nanos) -> Resolver {
    Resolver::new(ResolverSettings { resolver: id, seed: id, ..ResolverSettings::default() }, now)
}

fn events(resolver: &mut Resolver) -> Vec<ResolverEvent> {
    std::iter::from_fn(|| resolver.next_event()).collect()
}
