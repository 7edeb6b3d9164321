//! Bursts from a few publishers to many subscribers, as lines carry them.

use crate::distribution::Distribution;
use serde::{Deserialize, Serialize};

/// One run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Fanout {
    #[serde(flatten)]
    pub(crate) case: FanoutCase,
    pub(crate) count: Option<u64>,
    pub(crate) seconds: Option<f64>,
    pub(crate) published_per_second: Option<f64>,
    pub(crate) delivered_per_second: Option<f64>,
    pub(crate) owed: Option<u64>,
    pub(crate) lost: Option<u64>,
    pub(crate) excess: Option<u64>,
    pub(crate) latency: Option<Distribution>,
    pub(crate) clock: Option<String>,
    pub(crate) publisher_cpus: Option<Vec<u64>>,
    pub(crate) subscriber_cpus: Option<Vec<u64>>,
    pub(crate) numa: Option<String>,
    pub(crate) seating: Option<Seating>,
    pub(crate) server: Option<Server>,
    pub(crate) raise: Option<String>,
    pub(crate) repetition: Option<u64>,
}

/// What is varied.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(default)]
pub(crate) struct FanoutCase {
    pub(crate) wanted: Option<String>,
    pub(crate) publishers: Option<u64>,
    pub(crate) subscribers: Option<u64>,
    pub(crate) messages: Option<u64>,
    pub(crate) through: Option<String>,
}

/// Where threads were put.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Seating {
    pub(crate) node: Option<u64>,
    pub(crate) cpus: Option<Vec<u64>>,
    pub(crate) why: Option<String>,
}

/// What the server counted.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Server {
    pub(crate) published: Option<u64>,
    pub(crate) delivered: Option<u64>,
    pub(crate) cpu: Option<u64>,
    pub(crate) command_delay: Option<Delay>,
    pub(crate) round_delay: Option<Delay>,
}

/// How long something took inside the server.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Delay {
    pub(crate) p50_ns: Option<u64>,
    pub(crate) p99_ns: Option<u64>,
    pub(crate) samples: Option<u64>,
}

impl Fanout {
    /// Deliveries that did not come, or that nobody had asked for.
    pub(crate) fn wrong(&self) -> u64 {
        self.lost.unwrap_or(0).saturating_add(self.excess.unwrap_or(0))
    }
}
