//! Notices and callbacks of a ping.

use super::result::{PingResult, Traffic};
use lanecast_transport::{CloseReason, Gap, Stream};
use std::fmt;
use std::time::Duration;

/// An ended stream and its counts.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// The stream.
    pub stream: &'a Stream,
    /// Why it ended.
    pub why: CloseReason,
    /// Counts of the stream.
    pub traffic: &'a Traffic,
    /// Most messages a pong answered in one poll.
    pub most_at_once: Option<u64>,
}

/// A notice about the progress of a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// The other side is there.
    Joined(&'a Stream),
    /// Messages are lost for good.
    Lost(&'a Gap<'a>),
    /// The other side's stream ended.
    Left(&'a Ended<'a>),
    /// The warm-up begins.
    WarmingUp,
    /// The measured part begins, with its expected duration.
    Measuring(Duration),
}

/// Callbacks of a run.
pub struct Hooks<'a, S> {
    /// Ends the run early as soon as it is true.
    pub stop: &'a dyn Fn() -> bool,
    /// Number of messages the subscriber received by retransmission, if its transport counts them.
    pub recovered: fn(&mut S) -> Option<u64>,
    /// Receives notices, in the receiving thread.
    pub notify: &'a (dyn Fn(Notice<'_>) + Sync),
    /// Given the result before the ping lingers and closes.
    pub announce: &'a mut dyn FnMut(&PingResult),
}

impl<S> fmt::Debug for Hooks<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}
