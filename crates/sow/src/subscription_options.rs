//! Options of a subscription, chosen by its subscriber.

use std::time::Duration;

/// Options of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionOptions {
    /// Deliver out-of-focus events.
    pub out_of_focus: bool,
    /// Deliver deltas of records that the subscriber has.
    pub delta: bool,
    /// Interval between two updates of a record; in between only the latest is kept.
    pub conflation: Option<Duration>,
    /// Records per batch of the answer.
    pub batch: usize,
    /// Updates that may wait for the end of the query.
    pub waiting_max: usize,
    /// Bytes of their records; a single update may exceed it.
    pub waiting_bytes_max: usize,
}

impl Default for SubscriptionOptions {
    fn default() -> Self {
        let (out_of_focus, delta) = (false, false);
        let (waiting_max, waiting_bytes_max) = (1 << 20, 1 << 30);
        Self { out_of_focus, delta, conflation: None, batch: 10, waiting_max, waiting_bytes_max }
    }
}
