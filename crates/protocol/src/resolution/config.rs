//! Configuration, events, counters and errors of a resolver.

use super::announcement::Announcement;
use lanecast_wire::net::NAME_MAX;
use std::sync::Arc;

/// Configuration of a [`Resolver`](super::Resolver).
#[derive(Clone, Debug)]
pub struct ResolverSettings {
    /// Random number of the resolver, unique in the group.
    pub resolver: u64,
    /// Whether frames go to a multicast group or to peers; otherwise to daemons only.
    pub has_group: bool,
    /// Accepts Adverts of sessions at other addresses than the Advert's own.
    pub allow_foreign: bool,
    /// Most names sent per second.
    pub names_rate: u64,
    /// Most bytes sent per second.
    pub bytes_rate: u64,
    /// Most bytes sent at once.
    pub burst_bytes: u64,
    /// Most publishers of subscribed topics, over all topics; further ones are not found.
    pub topics_max: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for ResolverSettings {
    fn default() -> Self {
        Self {
            resolver: 0,
            has_group: true,
            allow_foreign: false,
            names_rate: 100_000,
            bytes_rate: 4_000_000,
            burst_bytes: 64 << 10,
            topics_max: 1 << 18,
            seed: 0,
        }
    }
}

/// Event of a resolver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolverEvent {
    /// A session publishes a subscribed topic. May be repeated.
    Found {
        /// The session.
        announcement: Announcement,
        /// The topic.
        topic: Arc<str>,
    },
    /// A session that had been found has closed.
    Gone {
        /// The session.
        session: u64,
    },
}

/// Counts of a resolver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResolverCounters {
    /// Adverts sent.
    pub adverts: u64,
    /// Queries sent.
    pub queries: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Frames received.
    pub frames: u64,
    /// Malformed entries received.
    pub malformed: u64,
    /// Entries in the group of sessions at other addresses, which were ignored.
    pub foreign: u64,
    /// Adverts of publishers of subscribed topics beyond the limit; repetitions count.
    pub overflowed: u64,
    /// Connections that a daemon has closed with a reason.
    pub ejected: u64,
}

/// Error of a topic name that is empty or too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a topic's name has 1 to {NAME_MAX} bytes; give it a shorter one, or one at all")]
pub struct InvalidTopicName;
