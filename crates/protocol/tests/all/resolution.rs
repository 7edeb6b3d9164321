//! Resolvers that talk to each other, and frames made by hand.

mod network;
mod pair;
mod patterns;
mod seeds;

use lanecast_protocol::Nanos;
use lanecast_protocol::resolution::{Resolver, ResolverEvent, ResolverSettings};
use lanecast_transport::{TopicPattern, TopicSelection};

const SESSION: u64 = 0x5e55;

/// The topics that any of `patterns` matches.
fn selection(patterns: &[&str], topics_max: usize) -> TopicSelection {
    let patterns = patterns.iter().map(|text| TopicPattern::wildcard(text).expect("a pattern"));
    TopicSelection::of_patterns(patterns.collect(), topics_max)
}

fn resolver(id: u64, now: Nanos) -> Resolver {
    Resolver::new(ResolverSettings { resolver: id, seed: id, ..ResolverSettings::default() }, now)
}

fn events(resolver: &mut Resolver) -> Vec<ResolverEvent> {
    std::iter::from_fn(|| resolver.next_event()).collect()
}
