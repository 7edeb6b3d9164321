//! A run before its result and its end.

use super::replies::Replies;
use super::result::{PingResult, Traffic};
use super::sender::{Part, Sender, Sent};
use super::settings::Settings;
use crate::conditions::Conditions;
use crate::monitor::RunMonitor;
use lanecast_transport::Publish;

/// A run before its result and its end.
pub(super) struct FinishedRun<'a, P> {
    pub(super) sender: Sender<'a, P>,
    pub(super) replies: Replies<'a>,
    pub(super) warmup: Sent,
    pub(super) measured: Sent,
    pub(super) recovered: Option<u64>,
    /// Conditions of the receiving thread, if it is another one.
    pub(super) receiver: Option<Conditions>,
}

impl<P: Publish> FinishedRun<'_, P> {
    /// The result, with the conditions of the sending thread.
    pub(super) fn result(
        &self,
        settings: &Settings,
        source: String,
        monitor: RunMonitor,
    ) -> PingResult {
        let measured = &self.measured;
        let asked = Part::measured(settings).messages;
        PingResult {
            topics: settings.topics.clone(),
            source,
            size: settings.size,
            sent: measured.messages,
            warmup: self.warmup.messages,
            interrupted: measured.messages < asked,
            duration_ns: measured.duration_ns,
            // As the document's tools count: the first message starts the time.
            rate: crate::outcome::rate(measured.messages.saturating_sub(1), measured.duration_ns),
            rate_asked: settings.rate,
            largest_burst: measured.largest_burst,
            most_in_flight: measured.most_in_flight,
            back_pressured: measured.back_pressured,
            traffic: Traffic { recovered: self.recovered, ..self.replies.traffic() },
            pong_left: self.replies.left(),
            linear: self.replies.linear(),
            latency: self.replies.latency(),
            lateness: self.sender.lateness(),
            threads: settings.threads,
            generic: settings.generic,
            drained: None,
            persistence: None,
            io_fallback: None,
            receiver: self.receiver.clone(),
            conditions: monitor.conditions(measured.longest_gap_ns),
        }
    }
}
