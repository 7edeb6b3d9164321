//! Settings of a store: bounds and times.

use crate::Nanos;

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
}

impl Default for StoreSettings {
    /// 10,000 streams, 4 MiB of early messages and 1,000 receivers for each, requests every 100 ms.
    fn default() -> Self {
        Self {
            streams_max: 10_000,
            early_bytes: 4 << 20,
            receivers_max: 1_000,
            retry: 100_000_000,
            longest_frame: 128 << 10,
        }
    }
}
