//! Result of a run.

use super::burst::{Bursts, DeliveryCount};
use super::load::Load;
use crate::distribution::Distribution;
use crate::recorder::Recorder;
use lanecast_base::clock::Clock;
use serde::Serialize;
use std::time::Duration;

/// A run's figures.
#[derive(Clone, Debug, Serialize)]
pub struct FanoutResult {
    /// Name of the server, or `embedded`.
    pub through: &'static str,
    /// Share of messages that filters let through.
    pub wanted: super::Wanted,
    /// Number of subscribers.
    pub subscribers: usize,
    /// Bursts that were published.
    #[serde(flatten)]
    pub bursts: Bursts,
    /// Duration of all bursts together.
    pub seconds: f64,
    /// Messages published a second.
    pub published_per_second: f64,
    /// Deliveries a second, to all subscribers together.
    pub delivered_per_second: f64,
    /// Expected deliveries.
    pub expected: u64,
    /// Expected deliveries that did not arrive.
    pub lost: u64,
    /// Unexpected deliveries.
    pub excess: u64,
    /// Latency from gathering a message for sending to its arrival, of one message in 64. In a full
    /// burst it includes queueing.
    pub latency: Option<Distribution>,
    /// Clock of the latency.
    pub clock: &'static str,
    /// CPUs that the publishers and the subscribers were kept on; empty for all.
    pub publisher_cpus: Vec<usize>,
    /// CPUs of subscribers, likewise.
    pub subscriber_cpus: Vec<usize>,
}

impl FanoutResult {
    pub(super) fn new(
        through: &'static str,
        load: &Load,
        bursts: Bursts,
        (took, deliveries): (Duration, &DeliveryCount),
        latency: &Recorder,
    ) -> Self {
        let (expected, arrived) = (deliveries.expected(), deliveries.arrived());
        let seconds = took.as_secs_f64().max(1e-9);
        Self {
            through,
            wanted: load.wanted,
            subscribers: load.subscribers,
            bursts,
            seconds,
            published_per_second: (bursts.count as u64 * bursts.messages) as f64 / seconds,
            delivered_per_second: arrived as f64 / seconds,
            expected,
            lost: expected.saturating_sub(arrived),
            excess: arrived.saturating_sub(expected),
            latency: latency.distribution(),
            clock: Clock::host().name(),
            publisher_cpus: Vec::new(),
            subscriber_cpus: Vec::new(),
        }
    }
}
