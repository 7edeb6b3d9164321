//! Results of pings and pongs, serialised as JSON.

use super::settings::{Threads, Topics};
use crate::conditions::Conditions;
use crate::distribution::Distribution;
use crate::latency::Latency;
use crate::linear::LinearResult;
use crate::persistent::FlightResult;
use serde::Serialize;

/// Counts of received messages, with the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Number of messages received.
    pub received: u64,
    /// Messages among them that came by retransmission, if the transport counts them.
    pub recovered: Option<u64>,
    /// Messages that the transport reported as lost.
    pub reported_lost: u64,
    /// Repeated messages.
    pub duplicated: u64,
    /// Messages that came back with another length.
    pub damaged: u64,
}

impl Traffic {
    /// Whether `sent` messages have come, each of them once.
    pub const fn is_complete(&self, sent: u64) -> bool {
        self.received == sent
            && self.reported_lost == 0
            && self.duplicated == 0
            && self.damaged == 0
    }
}

/// Result of a ping.
#[derive(Clone, Debug, Serialize)]
pub struct PingResult {
    /// The topics of both directions.
    pub topics: Topics,
    /// Destination of the bytes.
    pub source: String,
    /// The length of each message, in bytes.
    pub size: usize,
    /// Measured messages that were sent.
    pub sent: u64,
    /// Messages sent as warm-up.
    pub warmup: u64,
    /// Whether the run ended before all messages were sent.
    pub interrupted: bool,
    /// Time from before the first measured message to after the last.
    pub duration_ns: u64,
    /// Measured messages a second, the first one not counted.
    pub rate: f64,
    /// Requested messages a second.
    pub rate_asked: u64,
    /// Most messages due at one reading of the clock: 1 if the pace was always kept.
    pub largest_burst: u64,
    /// The most messages that were sent and not yet back.
    pub most_in_flight: u64,
    /// Number of times the window was full for a measured message.
    pub back_pressured: u64,
    /// Counts of answers.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Why the pong's stream ended before this side did; none if it did not.
    pub pong_left: Option<&'static str>,
    /// Round trips from the actual time of sending, as the document counts them.
    pub linear: LinearResult,
    /// Round trips, from both times of sending.
    pub latency: Option<Latency>,
    /// Delay of sending behind the schedule.
    pub lateness: Option<Distribution>,
    /// Number of busy threads.
    pub threads: Threads,
    /// Whether messages were copied by the thread-safe call.
    pub generic: bool,
    /// Whether the pong had read everything when the ping closed; none before.
    pub drained: Option<bool>,
    /// Messages in flight, if stores keep them.
    pub persistence: Option<FlightResult>,
    /// Why datagrams went by sockets although AF_XDP was asked for.
    pub io_fallback: Option<String>,
    /// Conditions of the receiving thread, if it is another one.
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

/// Result of a pong.
#[derive(Clone, Debug, Serialize)]
pub struct PongResult {
    /// The topics of both directions.
    pub topics: Topics,
    /// Counts of received messages.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Messages that were sent back.
    pub answered: u64,
    /// Most messages answered in one poll.
    pub most_at_once: u64,
    /// Number of times the window was full for an answer.
    pub back_pressured: u64,
    /// Whether messages were copied by the thread-safe call.
    pub generic: bool,
    /// Messages in flight, if stores keep them.
    pub persistence: Option<FlightResult>,
    /// Why datagrams went by sockets although AF_XDP was asked for.
    pub io_fallback: Option<String>,
    /// Conditions of the thread.
    #[serde(flatten)]
    pub conditions: Conditions,
}

impl PongResult {
    /// Whether every message that came was sent back, and none was lost.
    pub const fn is_complete(&self) -> bool {
        self.traffic.reported_lost == 0 && self.answered == self.traffic.received
    }
}
