//! Settings of a store: bounds and times.

use crate::Nanos;
use std::collections::BTreeMap;

/// Settings of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// The most streams.
    pub streams_max: usize,
    /// The most bytes per stream of messages that came before those in front of them.
    pub early_bytes: usize,
    /// The most receivers that are registered with a stream.
    pub receivers_max: usize,
    /// Interval of requests for missing messages.
    pub retry: Nanos,
    /// Longest frame of messages for others, unless a message alone is longer.
    pub longest_frame: usize,
    /// Nanoseconds after which a registered receiver that is away counts no longer: nothing but its
    /// position is kept for it, until it comes back. `None`: registrations live for good.
    pub receiver_lifetime: Option<u64>,
    /// Bounds of what receiver-paced streams hold.
    pub unconsumed: UnconsumedBounds,
}

/// Most bytes of a receiver-paced stream's messages that a registered receiver has not consumed: at
/// the bound a store takes no more of them, so that they are not stable, and the publisher stops.
/// The store's retention removes none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnconsumedBounds {
    /// Bound of topics that are not named. `None`: no bound, for stores without limits and those
    /// that give up messages consumed or not.
    pub bytes: Option<u64>,
    /// Topics with bounds of their own.
    pub topics: BTreeMap<String, Option<u64>>,
}

impl UnconsumedBounds {
    /// Bound of a topic.
    pub fn of(&self, topic: &str) -> Option<u64> {
        self.topics.get(topic).copied().unwrap_or(self.bytes)
    }
}

impl Default for StoreSettings {
    /// 10,000 streams, 4 MiB of early messages and 1,000 receivers for each, requests every 100 ms,
    /// no bound of what is not consumed, and registrations that live for good.
    fn default() -> Self {
        Self {
            streams_max: 10_000,
            early_bytes: 4 << 20,
            receivers_max: 1_000,
            retry: 100_000_000,
            longest_frame: 128 << 10,
            receiver_lifetime: None,
            unconsumed: UnconsumedBounds::default(),
        }
    }
}
