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
    /// Between two network namespaces with a cable between them.
    Veth(VethPath),
}

/// The measured path between two network namespaces.
#[derive(Clone, Copy, Debug)]
pub(super) enum VethPath {
    Bare(SocketKind),
    Sockets(TransportName),
    /// The same, with a path that is kept warm in silence.
    Warm(TransportName),
    /// Past the kernel's network stack.
    Xdp(TransportName),
}

impl VethPath {
    /// The setting `net.io` of the path.
    pub(super) const fn io(self) -> &'static str {
        match self {
            Self::Bare(_) | Self::Sockets(_) | Self::Warm(_) => "sockets",
            Self::Xdp(_) => "xdp",
        }
    }
}

/// One run of the series.
#[derive(Clone, Copy, Debug)]
pub(super) struct LatRun {
    pub(super) target: Target,
    pub(super) wait: WaitStrategy,
}

impl LatRun {
    /// Whether it needs two network namespaces.
    pub(super) const fn is_over_veth(&self) -> bool {
        matches!(self.target, Target::Veth(_))
    }
}

impl fmt::Display for LatRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.target {
            Target::Bare(socket) => write!(f, "bare {socket}, {}", self.wait),
            Target::Transport(transport) => write!(f, "{}, {}", transport.name(), self.wait),
            Target::StoreBacked(transport, mode) => {
                write!(f, "{} and a store (-p {mode}), {}", transport.name(), self.wait)
            }
            Target::Veth(VethPath::Bare(socket)) => {
                write!(f, "bare {socket} over veth, {}", self.wait)
            }
            Target::Veth(VethPath::Sockets(transport)) => {
                write!(f, "{} by sockets over veth, {}", transport.name(), self.wait)
            }
            Target::Veth(VethPath::Warm(transport)) => {
                write!(f, "{} kept warm over veth, {}", transport.name(), self.wait)
            }
            Target::Veth(VethPath::Xdp(transport)) => {
                write!(f, "{} by xdp over veth, {}", transport.name(), self.wait)
            }
        }
    }
}
