//! What a ping and a pong come to, as it goes into JSON.

use super::settings::{Threads, Topics};
use crate::conditions::Conditions;
use crate::distribution::Distribution;
use crate::latency::Latency;
use crate::linear::LinearResult;
use serde::Serialize;

/// Messages that a side received, with the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// How many.
    pub received: u64,
    /// Of these, messages that came by retransmission, if the transport counts that.
    pub recovered: Option<u64>,
    /// Messages that the transport said were lost for good.
    pub told_lost: u64,
    /// Messages that had come before.
    pub duplicated: u64,
    /// Messages that came back with another length.
    pub damaged: u64,
}

impl Traffic {
    /// Whether `sent` messages have come, each of them once.
    pub const fn is_complete(&self, sent: u64) -> bool {
        self.received == sent && self.told_lost == 0 && self.duplicated == 0 && self.damaged == 0
    }
}

/// What a ping came to.
#[derive(Clone, Debug, Serialize)]
pub struct PingResult {
    /// The topics of both directions.
    pub topics: Topics,
    /// Where the bytes went.
    pub source: String,
    /// The length of each message, in bytes.
    pub size: usize,
    /// Measured messages that were sent.
    pub sent: u64,
    /// Messages that were sent before, to warm up.
    pub warmup: u64,
    /// Whether the run was ended before all were sent.
    pub interrupted: bool,
    /// From before the first measured message to after the last.
    pub duration_ns: u64,
    /// Measured messages a second, the first one not counted.
    pub rate: f64,
    /// Messages a second that were asked for.
    pub rate_asked: u64,
    /// The most messages that were due at one look at the clock: 1 if the pace was always kept.
    pub largest_burst: u64,
    /// The most messages that were sent and not yet back.
    pub most_in_flight: u64,
    /// How often there was no room for a measured message.
    pub back_pressured: u64,
    /// What came back.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Why the pong's stream ended before this side did; none if it did not.
    pub pong_left: Option<&'static str>,
    /// Round trips from the actual time of sending, as the document counts them.
    pub linear: LinearResult,
    /// Round trips, from both times of sending.
    pub latency: Option<Latency>,
    /// By how much measured messages were sent after their time.
    pub lateness: Option<Distribution>,
    /// How many threads were hot.
    pub threads: Threads,
    /// Whether messages were copied by the thread-safe call.
    pub generic: bool,
    /// Whether the pong had read everything when the ping closed; none before.
    pub drained: Option<bool>,
    /// The conditions of the thread that received, where that was another one.
    pub receiver: Option<Conditions>,
    /// The conditions of the thread that sent.
    #[serde(flatten)]
    pub conditions: Conditions,
}

impl PingResult {
    /// Whether every message came back once.
    pub const fn is_complete(&self) -> bool {
        self.traffic.is_complete(self.sent + self.warmup)
    }
}

/// What a pong came to.
#[derive(Clone, Debug, Serialize)]
pub struct PongResult {
    /// The topics of both directions.
    pub topics: Topics,
    /// What was received.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Messages that were sent back.
    pub answered: u64,
    /// The most messages that were answered in one go.
    pub most_at_once: u64,
    /// How often there was no room for an answer.
    pub back_pressured: u64,
    /// Whether messages were copied by the thread-safe call.
    pub generic: bool,
    /// The conditions of the thread that did it.
    #[serde(flatten)]
    pub conditions: Conditions,
}

impl PongResult {
    /// Whether every message that came was sent back, and none was lost.
    pub const fn is_complete(&self) -> bool {
        self.traffic.told_lost == 0 && self.answered == self.traffic.received
    }
}
