//! The runs of a latency series.

use crate::perf::transport_name::TransportName;
use lanecast_base::WaitStrategy;
use lanecast_measure::socket_baseline::SocketKind;
use std::fmt;

/// The measured path.
#[derive(Clone, Copy, Debug)]
pub(super) enum Under {
    Bare(SocketKind),
    Transport(TransportName),
}

/// One run of the series.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) under: Under,
    pub(super) wait: WaitStrategy,
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.under {
            Under::Bare(socket) => write!(f, "bare {socket}, {}", self.wait),
            Under::Transport(transport) => write!(f, "{}, {}", transport.name(), self.wait),
        }
    }
}
