//! Under which conditions a figure was found.

use crate::interference::Interference;
use crate::pinning::Cpus;
use crate::priority::PriorityChange;
use crate::touch::Touch;
use lanecast_base::clock::Clock;
use lanecast_base::{Size, WaitStrategy};
use serde::{Serialize, Serializer};

/// What is known of a run before it starts, other than its own settings.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How this side waits.
    pub wait: WaitStrategy,
    /// The size of the publisher's window, as configured on this side.
    pub window: Size,
    /// What was done to the process's priority, and what is to be done.
    pub raise: PriorityChange,
    /// What times are read from.
    pub clock: Clock,
}

/// What a figure is worth nothing without.
#[derive(Clone, Debug, Serialize)]
pub struct Conditions {
    /// The transport's name.
    pub transport: &'static str,
    /// How this side waits.
    #[serde(serialize_with = "as_text")]
    pub wait: WaitStrategy,
    /// The size of the publisher's window, as configured on this side.
    #[serde(serialize_with = "as_text")]
    pub window: Size,
    /// How much of each message was written or read.
    pub touch: Touch,
    /// Where the times come from.
    pub clock: &'static str,
    /// What one reading of that clock costs.
    pub clock_cost_ns: f64,
    /// What recording one latency costs, with its reading of the clock.
    pub recording_cost_ns: f64,
    /// Where the measured thread ran.
    pub cpus: Cpus,
    /// What was done to the process's priority.
    pub raise: PriorityChange,
    /// What disturbed the measured thread.
    pub interference: Interference,
}

fn as_text<T: ToString, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&value.to_string())
}
