//! What a run has shown.

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
    /// Through what: a server's name, or `embedded`.
    pub through: &'static str,
    /// How much was wanted.
    pub wanted: super::Wanted,
    /// By how many subscribers.
    pub subscribers: usize,
    /// How much was published.
    #[serde(flatten)]
    pub bursts: Bursts,
    /// How long all bursts took together.
    pub seconds: f64,
    /// Messages published a second.
    pub published_per_second: f64,
    /// Messages that subscribers got a second, all together.
    pub delivered_per_second: f64,
    /// Deliveries that there should have been.
    pub owed: u64,
    /// Those of them that did not come.
    pub lost: u64,
    /// Deliveries that nobody had asked for.
    pub excess: u64,
    /// From when a message is gathered for sending until a subscriber has it, in a full burst: it
    /// holds what waits before it. One message in 64.
    pub latency: Option<Distribution>,
    /// The clock of the latency.
    pub clock: &'static str,
    /// CPUs that the publishers and the subscribers were kept on; empty for all.
    pub publisher_cpus: Vec<usize>,
    /// See there.
    pub subscriber_cpus: Vec<usize>,
}

impl FanoutResult {
    pub(super) fn new(
        through: &'static str,
        load: &Load,
        bursts: Bursts,
        (took, balance): (Duration, &DeliveryCount),
        latency: &Recorder,
    ) -> Self {
        let (owed, arrived) = (balance.owed(), balance.arrived());
        let seconds = took.as_secs_f64().max(1e-9);
        Self {
            through,
            wanted: load.wanted,
            subscribers: load.subscribers,
            bursts,
            seconds,
            published_per_second: (bursts.count as u64 * bursts.messages) as f64 / seconds,
            delivered_per_second: arrived as f64 / seconds,
            owed,
            lost: owed.saturating_sub(arrived),
            excess: arrived.saturating_sub(owed),
            latency: latency.distribution(),
            clock: Clock::host().name(),
            publisher_cpus: Vec::new(),
            subscriber_cpus: Vec::new(),
        }
    }
}
