//! Conditions of a measurement: stored with every figure.

use crate::interference::Interference;
use crate::names::named;
use crate::pinning::Cpus;
use crate::priority::PriorityChange;
use crate::touch::Touch;
use lanecast_base::clock::Clock;
use lanecast_base::{Size, WaitStrategy};
use serde::{Serialize, Serializer};

named! {
    /// Way of the datagrams between host and network, as in use.
    pub enum DatagramIo: "way of datagrams" {
        /// Sockets of the kernel.
        Sockets = "sockets",
        /// AF_XDP; the kernel copies frames between the card's memory and the program's.
        XdpCopy = "xdp copy",
        /// AF_XDP; the card reads and writes the program's memory.
        XdpZeroCopy = "xdp zero-copy",
    }
}

/// Conditions of a run that are known before it starts.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Wait strategy of this side.
    pub wait: WaitStrategy,
    /// The size of the publisher's window, as configured on this side.
    pub window: Size,
    /// Way of the datagrams; `None` without datagrams.
    pub io: Option<DatagramIo>,
    /// Change of the process's priority, made or requested.
    pub raise: PriorityChange,
    /// Clock that all times are read from.
    pub clock: Clock,
}

/// Conditions of a measured thread.
#[derive(Clone, Debug, Serialize)]
pub struct Conditions {
    /// The transport's name.
    pub transport: &'static str,
    /// Wait strategy of this side.
    #[serde(serialize_with = "as_text")]
    pub wait: WaitStrategy,
    /// The size of the publisher's window, as configured on this side.
    #[serde(serialize_with = "as_text")]
    pub window: Size,
    /// Way of the datagrams; none without datagrams.
    pub io: Option<DatagramIo>,
    /// Part of each message that was written or read.
    pub touch: Touch,
    /// Name of the clock.
    pub clock: &'static str,
    /// Cost of one reading of that clock.
    pub clock_cost_ns: f64,
    /// Cost of recording one latency, with its reading of the clock.
    pub recording_cost_ns: f64,
    /// CPUs of the measured thread.
    pub cpus: Cpus,
    /// Change of the process's priority.
    pub raise: PriorityChange,
    /// Interference with the measured thread.
    pub interference: Interference,
}

fn as_text<T: ToString, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&value.to_string())
}
