//! What goes wrong, and how it is mended.

use crate::link::Weather;
use crate::network::Host;
use lanecast_protocol::Nanos;

/// Something that befalls the network or a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing passes in one direction until then.
    Cut(Host, Host, Nanos),
    /// It passes again.
    Heal(Host, Host),
    /// The weather changes everywhere.
    Weather(Weather),
    /// A subscriber's process stands still.
    Suspend(usize),
    /// It goes on.
    Resume(usize),
    /// A subscriber's application does not look at what has come.
    Stall(usize),
    /// It does again.
    Unstall(usize),
    /// A subscriber's process dies.
    Crash(usize),
    /// It runs (again).
    Start(usize),
    /// A subscriber leaves.
    Leave(usize),
    /// A subscriber wants all topics.
    WantAll(usize),
    /// A subscriber's connection breaks.
    Break(usize),
    /// The publisher's process stands still.
    SuspendPublisher,
    /// It goes on.
    ResumePublisher,
    /// The publisher's process dies.
    CrashPublisher,
    /// It runs again, with another session.
    RestartPublisher,
}
