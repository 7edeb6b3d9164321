//! Faults, and their ends.

use crate::link::LinkConditions;
use crate::network::Host;
use lanecast_protocol::Nanos;

/// Fault of the network or of a process, or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A direction is cut until then.
    Cut(Host, Host, Nanos),
    /// The direction is open again.
    Heal(Host, Host),
    /// The conditions change everywhere.
    LinkConditions(LinkConditions),
    /// A subscriber's process is suspended.
    Suspend(usize),
    /// The process is resumed.
    Resume(usize),
    /// A subscriber's application stops reading.
    Stall(usize),
    /// The application reads again.
    Unstall(usize),
    /// A subscriber's process dies.
    Crash(usize),
    /// The process is started.
    Start(usize),
    /// A subscriber leaves.
    Leave(usize),
    /// A subscriber subscribes to all topics.
    WantAll(usize),
    /// A subscriber's connection breaks.
    Break(usize),
    /// The publisher's process is suspended.
    SuspendPublisher,
    /// The process is resumed.
    ResumePublisher,
    /// The publisher's process dies.
    CrashPublisher,
    /// The process is restarted with another session.
    RestartPublisher,
}
