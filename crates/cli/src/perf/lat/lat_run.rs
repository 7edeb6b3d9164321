//! The runs of a latency series.

use crate::perf::transport_name::TransportName;
use lanecast_base::WaitStrategy;
use lanecast_measure::persistent::PersistMode;
use lanecast_measure::socket_baseline::SocketKind;
use std::fmt;

/// The measured path.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    Bare(SocketKind),
    Transport(TransportName),
    /// The same, with a store that keeps the messages.
    StoreBacked(TransportName, PersistMode),
}

/// One run of the series.
#[derive(Clone, Copy, Debug)]
pub(super) struct LatRun {
    pub(super) target: Target,
    pub(super) wait: WaitStrategy,
}

impl fmt::Display for LatRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.target {
            Target::Bare(socket) => write!(f, "bare {socket}, {}", self.wait),
            Target::Transport(transport) => write!(f, "{}, {}", transport.name(), self.wait),
            Target::StoreBacked(transport, mode) => {
                write!(f, "{} and a store (-p {mode}), {}", transport.name(), self.wait)
            }
        }
    }
}
