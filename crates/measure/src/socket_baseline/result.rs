//! Results of cases.

use super::case::{Experiment, SocketKind, Way};
use super::packing::Load;
use super::settings::Settings;
use crate::conditions::Conditions;
use crate::distribution::Distribution;
use crate::latency::Latency;
use serde::Serialize;

/// Result of one case. Its conditions name the socket as the transport.
#[derive(Clone, Debug, Serialize)]
pub struct SocketBaseline {
    /// Exchange of the threads.
    pub experiment: Experiment,
    /// System calls that sent messages.
    pub way: Way,
    /// The length of each message, in bytes.
    pub size: usize,
    /// The length of each datagram, in bytes; none of a stream.
    pub datagram_bytes: Option<usize>,
    /// Messages a second that were asked for; 0 for as many as possible.
    pub rate_asked: u64,
    /// Measured messages that were sent.
    pub sent: u64,
    /// Messages that arrived; of round trips, messages that came back.
    pub received: u64,
    /// Messages that did not.
    pub lost: u64,
    /// Time from sending the first message to the arrival of the last.
    pub duration_ns: u64,
    /// Messages per second that arrived.
    pub rate: f64,
    /// Latency of round trips, from both times of sending.
    pub latency: Option<Latency>,
    /// Delay of sending behind the schedule, of round trips.
    pub lateness: Option<Distribution>,
    /// The conditions of the thread that received; none if that was another process.
    pub receiver: Option<Conditions>,
    /// The conditions of the thread that sent.
    #[serde(flatten)]
    pub conditions: Conditions,
}

/// Result of the sending thread.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub(super) messages: u64,
    /// Answers, of round trips.
    pub(super) received: Option<u64>,
    /// When the first one was sent and the last one came back, in ticks.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) latency: Option<Latency>,
    pub(super) lateness: Option<Distribution>,
}

/// Result of the receiving thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    pub(super) messages: u64,
    /// When the last one came, in ticks.
    pub(super) end: u64,
}

impl SocketBaseline {
    pub(super) fn new(
        settings: &Settings,
        load: Load,
        sent: Sent,
        arrived: Received,
        receiver: Option<Conditions>,
        conditions: Conditions,
    ) -> Self {
        let case = settings.case;
        let received = sent.received.unwrap_or(arrived.messages);
        let end = if sent.received.is_some() { sent.end } else { arrived.end };
        let duration_ns = settings.clock.ns(end.saturating_sub(sent.start));
        let is_scheduled = case.experiment == Experiment::RoundTrip;
        Self {
            experiment: case.experiment,
            way: case.way,
            size: settings.size,
            datagram_bytes: (case.socket != SocketKind::Tcp).then_some(load.segment),
            rate_asked: if is_scheduled { settings.rate } else { 0 },
            sent: sent.messages,
            received,
            lost: sent.messages.saturating_sub(received),
            duration_ns,
            rate: crate::outcome::rate(received, duration_ns),
            latency: sent.latency,
            lateness: sent.lateness,
            receiver,
            conditions,
        }
    }

    /// Whether every message arrived.
    pub const fn is_complete(&self) -> bool {
        self.lost == 0
    }
}
