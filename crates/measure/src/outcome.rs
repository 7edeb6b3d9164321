//! The results of the tools, as they go into JSON.

use crate::conditions::Conditions;
use crate::distribution::Distribution;
use crate::interference::Interference;
use crate::latency::Latency;
use crate::linear::LinearResult;
use crate::pinning::Cpus;
use crate::priority::PriorityChange;
use serde::Serialize;

/// What a publisher's run came to.
#[derive(Clone, Debug, Serialize)]
pub struct PublisherResult {
    /// The topic; of several, all of them with commas between.
    pub topic: String,
    /// The publisher's run, as 16 hexadecimal digits.
    pub session: String,
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
    /// Measured messages a second.
    pub rate: f64,
    /// Messages a second that were asked for; 0 and 999999999 mean as many as possible.
    pub rate_asked: u64,
    /// Messages that are due together; 1 for even spacing.
    pub burst: u64,
    /// The most messages that were sent without a look at the clock.
    pub largest_burst: u64,
    /// How often there was no room for a measured message, if the transport counts that.
    pub back_pressured: Option<u64>,
    /// Subscribers when the measured part began.
    pub subscribers_at_start: usize,
    /// Subscribers when it ended.
    pub subscribers_at_end: usize,
    /// Whether all subscribers had read everything when the publisher closed; none before.
    pub drained: Option<bool>,
    /// By how much messages were sent after their time, if they were stamped and had one.
    pub lateness: Option<Distribution>,
    /// How long each call took that sent a measured message, if that was asked for.
    pub calls: Option<LinearResult>,
    /// The conditions of the run.
    #[serde(flatten)]
    pub conditions: Conditions,
}

/// What a subscriber saw of one publisher.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamResult {
    /// The topic.
    pub topic: String,
    /// The publisher's run, as 16 hexadecimal digits.
    pub session: String,
    /// Where the bytes came through.
    pub source: String,
    /// Why the stream ended; none if this side ended first.
    pub ended: Option<&'static str>,
    /// The counts and times.
    #[serde(flatten)]
    pub figures: Figures,
}

/// Counts and times of received messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Messages, with warm-up.
    pub received: u64,
    /// Of these, messages of the warm-up.
    pub warmup: u64,
    /// Messages whose numbers are missing after the first one received.
    pub lost: u64,
    /// Messages that the transport itself said were lost.
    pub told_lost: u64,
    /// Messages whose number had come before.
    pub duplicated: u64,
    /// Messages that arrived with other content than was written.
    pub damaged: u64,
    /// Messages that could only be counted, being too small for a number or not from this tool.
    pub unchecked: u64,
    /// The number of the first message; those before it were sent before this side joined.
    pub first_number: Option<u64>,
    /// From the first measured message to the last.
    pub duration_ns: u64,
    /// Measured messages a second; all messages, where the warm-up cannot be told apart.
    pub rate: f64,
    /// Latency, if messages were stamped and this side read the stamps.
    pub latency: Option<Latency>,
}

impl Figures {
    /// Whether every message from the first one on arrived once, and as it was written.
    pub fn is_complete(&self) -> bool {
        self.lost == 0 && self.told_lost == 0 && self.duplicated == 0 && self.damaged == 0
    }
}

/// What a subscriber's run came to: the sums, then each stream by itself.
#[derive(Clone, Debug, Serialize)]
pub struct SubscriberResult {
    /// All streams together.
    #[serde(flatten)]
    pub figures: Figures,
    /// The histogram that the documents' latency tools print, if it was asked for.
    pub linear: Option<LinearResult>,
    /// Whether only counts and order were looked at.
    pub fast: bool,
    /// Empty iterations per message.
    pub spin: u64,
    /// How many messages came by retransmission, if the transport counts that.
    pub recovered: Option<u64>,
    /// The streams, in the order of joining.
    pub streams: Vec<StreamResult>,
    /// The conditions of the run.
    #[serde(flatten)]
    pub conditions: Conditions,
}

/// How a thread was interrupted: the gaps between readings of a clock, taken back to back.
#[derive(Clone, Debug, Serialize)]
pub struct JitterResult {
    /// How many gaps.
    pub loops: u64,
    /// The shortest: what a reading of the clock costs.
    pub ts_min_ns: u64,
    /// The longest interruption.
    pub ts_max_ns: u64,
    /// All gaps.
    pub gaps: Distribution,
    /// Gaps of more than a microsecond.
    pub long_gaps: u64,
    /// The time in these, as a share of all time.
    pub lost_share: f64,
    /// How long it took.
    pub duration_ns: u64,
    /// The clock that was read.
    pub clock: &'static str,
    /// What a reading costs when nothing is done with it.
    pub clock_cost_ns: f64,
    /// What a reading of `CLOCK_MONOTONIC` costs, which is what the documents' tools read.
    pub monotonic_cost_ns: f64,
    /// Where the thread ran.
    pub cpus: Cpus,
    /// What was done to the process's priority.
    pub raise: PriorityChange,
    /// What disturbed the thread.
    pub interference: Interference,
}

/// Messages a second; 0 if no time passed.
pub(crate) fn rate(messages: u64, duration_ns: u64) -> f64 {
    if duration_ns == 0 { 0.0 } else { messages as f64 * 1e9 / duration_ns as f64 }
}
