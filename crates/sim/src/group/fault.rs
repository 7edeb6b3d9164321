//! Faults of groups, and their ends.

use crate::link::LinkConditions;
use crate::rng::Millionths;
use lanecast_protocol::Nanos;

/// Fault of the network or of a member's process, or its end. Processes are named by their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupFault {
    /// A process dies. Others learn of it after this time, if at all.
    Crash(usize, Option<Nanos>),
    /// A process starts anew, as a new incarnation of the same name.
    Start(usize),
    /// A process is suspended.
    Hang(usize),
    /// The process goes on.
    Resume(usize),
    /// Only processes of the same side, by place, hear each other.
    Partition(Vec<u8>),
    /// One direction between two processes is cut.
    Cut(usize, usize),
    /// The direction is open again.
    Mend(usize, usize),
    /// All directions are open again.
    Heal,
    /// The conditions change everywhere.
    Conditions(LinkConditions),
    /// A member leaves.
    Leave(usize),
    /// The transport of a process refuses frames with this probability.
    Refuse(usize, Millionths),
    /// The first process is told that the second one died, which is not so.
    FalseAlarm(usize, usize),
}
