//! The results of the tools, as they go into JSON.

use crate::conditions::Conditions;
use crate::distribution::Distribution;
use crate::interference::Interference;
use crate::latency::Latency;
use crate::linear::LinearResult;
use crate::persistent::FlightResult;
use crate::pinning::Cpus;
use crate::priority::PriorityChange;
use serde::Serialize;

/// Result of a publisher.
#[derive(Clone, Debug, Serialize)]
pub struct PublisherResult {
    /// The topic, or several separated by commas.
    pub topic: String,
    /// Session of the publisher, as 16 hexadecimal digits.
    pub session: String,
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
    /// Measured messages a second.
    pub rate: f64,
    /// Requested messages a second; 0 and 999999999 mean flat out.
    pub rate_asked: u64,
    /// Messages that are due together; 1 for even spacing.
    pub burst: u64,
    /// Most messages sent between two readings of the clock.
    pub largest_burst: u64,
    /// Number of times the window was full, if the transport counts that.
    pub back_pressured: Option<u64>,
    /// Subscribers when the measured part began.
    pub subscribers_at_start: usize,
    /// Subscribers when it ended.
    pub subscribers_at_end: usize,
    /// Whether all subscribers had read everything when the publisher closed; none before.
    pub drained: Option<bool>,
    /// Delay of sending behind the schedule, for stamped messages with a schedule.
    pub lateness: Option<Distribution>,
    /// Duration of each call that sent a measured message, if requested.
    pub calls: Option<LinearResult>,
    /// Messages in flight, if stores keep them.
    pub persistence: Option<FlightResult>,
    /// The conditions of the run.
    #[serde(flatten)]
    pub conditions: Conditions,
}

/// Result of one stream at a subscriber.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamResult {
    /// The topic.
    pub topic: String,
    /// Session of the publisher, as 16 hexadecimal digits.
    pub session: String,
    /// Source of the bytes.
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
    /// Messages of the warm-up among them.
    pub warmup: u64,
    /// Missing message numbers after the first one received.
    pub lost: u64,
    /// Messages that the transport reported as lost.
    pub reported_lost: u64,
    /// Messages whose number had come before.
    pub duplicated: u64,
    /// Messages that arrived with other content than was written.
    pub damaged: u64,
    /// Messages without a check: too small for a number, or from another program.
    pub unchecked: u64,
    /// Number of the first message; earlier ones were sent before this side joined.
    pub first_number: Option<u64>,
    /// Time from the first measured message to the last.
    pub duration_ns: u64,
    /// Measured messages a second; all messages, where the warm-up cannot be told apart.
    pub rate: f64,
    /// Latency, if messages were stamped and this side read the stamps.
    pub latency: Option<Latency>,
}

impl Figures {
    /// Whether every message from the first one on arrived once and undamaged.
    pub fn is_complete(&self) -> bool {
        self.lost == 0 && self.reported_lost == 0 && self.duplicated == 0 && self.damaged == 0
    }
}

/// Result of a subscriber: the sums, then each stream.
#[derive(Clone, Debug, Serialize)]
pub struct SubscriberResult {
    /// All streams together.
    #[serde(flatten)]
    pub figures: Figures,
    /// The histogram that the documents' latency tools print, if it was asked for.
    pub linear: Option<LinearResult>,
    /// Whether only counts and order were checked.
    pub fast: bool,
    /// Empty iterations per message.
    pub spin: u64,
    /// Messages received by retransmission, if the transport counts them.
    pub recovered: Option<u64>,
    /// The streams, in the order of joining.
    pub streams: Vec<StreamResult>,
    /// The conditions of the run.
    #[serde(flatten)]
    pub conditions: Conditions,
}

/// Result of the jitter test: gaps between back-to-back clock readings.
#[derive(Clone, Debug, Serialize)]
pub struct JitterResult {
    /// Number of gaps.
    pub loops: u64,
    /// The shortest gap: the cost of a clock reading.
    pub ts_min_ns: u64,
    /// The longest interruption.
    pub ts_max_ns: u64,
    /// All gaps.
    pub gaps: Distribution,
    /// Gaps of more than a microsecond.
    pub long_gaps: u64,
    /// The time in these, as a share of all time.
    pub lost_share: f64,
    /// Duration of the test.
    pub duration_ns: u64,
    /// The clock that was read.
    pub clock: &'static str,
    /// Cost of a bare reading.
    pub clock_cost_ns: f64,
    /// Cost of reading `CLOCK_MONOTONIC`, the clock of the documents' tools.
    pub monotonic_cost_ns: f64,
    /// CPUs of the thread.
    pub cpus: Cpus,
    /// Change of the process's priority.
    pub raise: PriorityChange,
    /// Interference with the thread.
    pub interference: Interference,
}

/// Messages a second; 0 if no time passed.
pub(crate) fn rate(messages: u64, duration_ns: u64) -> f64 {
    if duration_ns == 0 { 0.0 } else { messages as f64 * 1e9 / duration_ns as f64 }
}
