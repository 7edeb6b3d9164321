//! Round trips, and what bare sockets can do, as lines carry them.

use crate::conditions::Conditions;
use crate::distribution::Distribution;
use crate::outcome::{Latency, Linear};
use serde::{Deserialize, Serialize};

/// The topics of both directions.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Topics {
    pub(crate) ping: Option<String>,
    pub(crate) pong: Option<String>,
}

/// What one side of round trips received.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Traffic {
    pub(crate) received: Option<u64>,
    pub(crate) recovered: Option<u64>,
    pub(crate) told_lost: Option<u64>,
    pub(crate) duplicated: Option<u64>,
    pub(crate) damaged: Option<u64>,
}

/// Round trips, seen by the side that begins.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Ping {
    pub(crate) topics: Option<Topics>,
    pub(crate) source: Option<String>,
    pub(crate) size: Option<u64>,
    pub(crate) sent: Option<u64>,
    pub(crate) warmup: Option<u64>,
    pub(crate) interrupted: Option<bool>,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) rate: Option<f64>,
    pub(crate) rate_asked: Option<u64>,
    pub(crate) largest_burst: Option<u64>,
    pub(crate) most_in_flight: Option<u64>,
    pub(crate) back_pressured: Option<u64>,
    #[serde(flatten)]
    pub(crate) traffic: Traffic,
    pub(crate) pong_left: Option<String>,
    pub(crate) linear: Option<Linear>,
    pub(crate) latency: Option<Latency>,
    pub(crate) lateness: Option<Distribution>,
    pub(crate) threads: Option<String>,
    pub(crate) generic: Option<bool>,
    pub(crate) drained: Option<bool>,
    pub(crate) receiver: Option<Conditions>,
    pub(crate) repetition: Option<u64>,
    pub(crate) repetitions: Option<u64>,
    pub(crate) published: Option<Vec<PublishedTimes>>,
    #[serde(flatten)]
    pub(crate) conditions: Conditions,
}

/// What the UM latency document says of a load, of one of its set-ups.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct PublishedTimes {
    pub(crate) name: Option<String>,
    pub(crate) min_ns: Option<u64>,
    pub(crate) mean_ns: Option<f64>,
    pub(crate) p90_ns: Option<u64>,
    pub(crate) p99_ns: Option<u64>,
    pub(crate) p99_9_ns: Option<u64>,
    pub(crate) p99_99_ns: Option<u64>,
    pub(crate) p99_999_ns: Option<u64>,
    pub(crate) max_ns: Option<u64>,
    pub(crate) largest_burst: Option<u64>,
}

/// Round trips, seen by the side that answers.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Pong {
    pub(crate) topics: Option<Topics>,
    #[serde(flatten)]
    pub(crate) traffic: Traffic,
    pub(crate) answered: Option<u64>,
    pub(crate) most_at_once: Option<u64>,
    pub(crate) back_pressured: Option<u64>,
    pub(crate) generic: Option<bool>,
    #[serde(flatten)]
    pub(crate) conditions: Conditions,
}

/// What bare sockets can do.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Floor {
    pub(crate) experiment: Option<String>,
    pub(crate) way: Option<String>,
    pub(crate) size: Option<u64>,
    pub(crate) datagram_bytes: Option<u64>,
    pub(crate) rate_asked: Option<u64>,
    pub(crate) sent: Option<u64>,
    pub(crate) received: Option<u64>,
    pub(crate) lost: Option<u64>,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) rate: Option<f64>,
    pub(crate) latency: Option<Latency>,
    pub(crate) lateness: Option<Distribution>,
    pub(crate) receiver: Option<Conditions>,
    #[serde(flatten)]
    pub(crate) conditions: Conditions,
}

impl Traffic {
    /// Messages that were lost, came twice, or were not what was sent.
    pub(crate) fn wrong(&self) -> u64 {
        let all = [self.told_lost, self.duplicated, self.damaged];
        all.into_iter().flatten().fold(0, u64::saturating_add)
    }
}

impl Ping {
    /// Messages that did not come back as they were sent; those that are missing were lost,
    /// whether the transport said so or not.
    pub(crate) fn wrong(&self) -> u64 {
        let sent = self.sent.unwrap_or(0).saturating_add(self.warmup.unwrap_or(0));
        let missing = sent.saturating_sub(self.traffic.received.unwrap_or(sent));
        let told = self.traffic.told_lost.unwrap_or(0);
        self.traffic.wrong().saturating_add(missing.saturating_sub(told))
    }

    /// The doubts of both threads.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = &String> {
        both(&self.conditions, &self.receiver)
    }
}

impl Floor {
    /// The doubts of both threads.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = &String> {
        both(&self.conditions, &self.receiver)
    }
}

fn both<'a>(
    conditions: &'a Conditions,
    receiver: &'a Option<Conditions>,
) -> impl Iterator<Item = &'a String> {
    conditions.doubts().iter().chain(receiver.iter().flat_map(Conditions::doubts))
}
