//! Parameters and errors of a case, and the progress its threads share.

use super::case::{Case, SocketKind};
use crate::conditions::{DatagramIo, Setup};
use crate::monitor::RunMonitor;
use crate::ping::STAMP;
use crate::pinning::{Pinning, PinningError};
use crate::priority::PriorityChange;
use crate::touch::Touch;
use lanecast_base::Size;
use lanecast_base::clock::Clock;
use lanecast_base::sync::{AtomicBool, AtomicU64, Ordering};
use std::io;
use std::time::Duration;
use thiserror::Error;

/// The longest message: what one datagram holds.
pub const LONGEST: usize = lanecast_os::udp::GSO_BYTES_MAX;

/// Parameters of a case.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The case.
    pub case: Case,
    /// The length of each message, in bytes.
    pub size: usize,
    /// Round trips: messages a second.
    pub rate: u64,
    /// Round trips: number of measured messages.
    pub messages: u64,
    /// Round trips: number of warm-up messages, at the same rate.
    pub warmup: u64,
    /// One way: duration of the measured part, after a short warm-up.
    pub time: Duration,
    /// Length of a datagram of packed messages, in bytes; a longer message has its own datagram.
    pub datagram_bytes: usize,
    /// CPU of the sending thread.
    pub sender: Pinning,
    /// CPU of the receiving thread.
    pub receiver: Pinning,
    /// Change of the process's priority.
    pub raise: PriorityChange,
    /// Clock that all times are read from.
    pub clock: Clock,
}

/// Errors of the socket baseline.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SocketBaselineError {
    /// A message is too small for its times, or too long for a datagram.
    #[error("-m {size} does not do: take {STAMP} to {LONGEST} bytes")]
    Size {
        /// The length asked for.
        size: usize,
    },
    /// The other end has no address, and this one needs it.
    #[error("the other end of {0} has told no address")]
    NoAddress(SocketKind),
    /// No rate or no messages.
    #[error("-r 0 and -n 0 are no schedule: take 1 or more")]
    Nothing,
    /// The sockets.
    #[error("{socket} by bare sockets does not work")]
    Sockets {
        /// Kind of the sockets.
        socket: SocketKind,
        /// Error of the system.
        source: io::Error,
    },
    /// A thread's CPU.
    #[error(transparent)]
    Pinning(#[from] PinningError),
    /// A thread cannot be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// The stop flag was raised.
    #[error("interrupted")]
    Stopped,
}

/// Progress of the case, shared by its threads.
#[derive(Debug, Default)]
pub struct Progress {
    /// Messages received or known to be lost. A count only: no data is published through it, so
    /// `Relaxed` suffices.
    pub(super) accounted: AtomicU64,
    /// The sender has ended.
    pub(super) is_off: AtomicBool,
    /// The calling thread stops the case.
    pub(super) is_stopped: AtomicBool,
}

impl Progress {
    /// Ends the case.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_off.load(Ordering::Relaxed) || self.is_stopped.load(Ordering::Relaxed)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

impl Settings {
    pub(super) fn refused(&self, source: io::Error) -> SocketBaselineError {
        SocketBaselineError::Sockets { socket: self.case.socket, source }
    }

    pub(super) fn monitor(&self, place: Pinning, window: Size) -> RunMonitor {
        let Self { case, raise, clock, .. } = *self;
        let io = (case.socket != SocketKind::Tcp).then_some(DatagramIo::Sockets);
        let setup = Setup { wait: case.wait, window, io, raise, clock };
        RunMonitor::new(case.socket.name(), setup, Touch::Header, place)
    }
}
