//! Results of an exchange between threads.

use super::delivery_check::DeliveryErrors;
use super::group::ThreadOutcome;
use super::thread::ThreadResult;
use crate::baseline::Baseline;
use crate::outcome::rate;
use crate::priority::PriorityChange;
use serde::Serialize;
use std::time::Duration;

/// Result of an exchange: counts, times and conditions.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Messages sent, by all producers together; of a ping-pong, rounds there and back.
    pub messages: u64,
    /// Delivery errors.
    #[serde(flatten)]
    pub wrong: DeliveryErrors,
    /// Time from the first producer's start to the last consumer's end.
    pub duration_ns: u64,
    /// The duration of one message: the document's density.
    pub density_ns: f64,
    /// Messages a second.
    pub rate: f64,
    /// Baseline just before the run.
    pub baseline: Baseline,
    /// Change of the process's priority.
    pub raise: PriorityChange,
    /// The threads, producers first.
    pub threads: Vec<ThreadResult>,
}

impl Outcome {
    /// The result of `messages` in the time that `shares` took together.
    pub(crate) fn new<T>(
        messages: u64,
        wrong: DeliveryErrors,
        baseline: Baseline,
        raise: PriorityChange,
        shares: Vec<ThreadOutcome<T>>,
    ) -> Self {
        let start = shares.iter().map(|share| share.start).min();
        let end = shares.iter().map(|share| share.end).max();
        let time = start.zip(end).map_or(Duration::ZERO, |(start, end)| end - start);
        let duration_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            messages,
            wrong,
            duration_ns,
            density_ns: duration_ns as f64 / messages.max(1) as f64,
            rate: rate(messages, duration_ns),
            baseline,
            raise,
            threads: shares.into_iter().map(|share| share.thread).collect(),
        }
    }
}
