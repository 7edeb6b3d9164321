//! What a ping is to do, what it asks and tells, and why it fails.

use super::result::{PingResult, Traffic};
use super::stamp::STAMP;
use crate::conditions::Setup;
use crate::linear::LinearShape;
use crate::names::named;
use crate::pinning::{Pinning, PinningError};
use lanecast_transport::{ClaimError, CloseReason, Gap, Stream};
use serde::Serialize;
use std::error::Error;
use std::fmt;
use std::time::Duration;
use thiserror::Error;

/// The topics of both directions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Topics {
    /// What the ping publishes.
    pub ping: String,
    /// What the pong answers on.
    pub pong: String,
}

impl Default for Topics {
    /// The document's.
    fn default() -> Self {
        Self { ping: "topic1".into(), pong: "topic2".into() }
    }
}

named! {
    /// The number of busy threads in the ping's process.
    pub enum Threads: "number of threads" {
        /// One sends on schedule and polls for answers in between.
        One = "one",
        /// One sends, another one receives.
        Two = "two",
    }
}

/// What a ping is to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The topics.
    pub topics: Topics,
    /// The length of each message, in bytes.
    pub size: usize,
    /// How many messages are measured.
    pub messages: u64,
    /// Messages a second; 0 for as many as possible.
    pub rate: u64,
    /// How many messages are sent before, to warm up, and how many a second.
    pub warmup: u64,
    /// Messages a second of the warm-up; 0 for as many as possible.
    pub warmup_rate: u64,
    /// The histogram that is printed.
    pub histogram: LinearShape,
    /// Whether messages are copied by the thread-safe call instead of being written in place.
    pub generic: bool,
    /// How many threads do it.
    pub threads: Threads,
    /// Where the sending thread runs.
    pub sender: Pinning,
    /// Where the receiving thread runs, if it is another one, from the pong's arrival on.
    pub receiver: Pinning,
    /// How long to wait for answers that are still missing, after each part, and at the end until
    /// the pong has read everything.
    pub linger: Duration,
    /// What is known of the run already.
    pub setup: Setup,
}

impl Settings {
    pub(super) fn check(&self) -> Result<(), PingError> {
        if self.size < STAMP {
            return Err(PingError::TooSmall { size: self.size });
        }
        if self.messages == 0 {
            return Err(PingError::Nothing);
        }
        Ok(())
    }
}

/// A stream that ended, and what came of it.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// The stream.
    pub stream: &'a Stream,
    /// Why it ended.
    pub why: CloseReason,
    /// What it brought.
    pub traffic: &'a Traffic,
    /// Of a pong: the most messages that it answered in one go.
    pub most_at_once: Option<u64>,
}

/// What happened, told as it happens.
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
    /// The measured part begins, and is expected to take so long.
    Measuring(Duration),
}

/// What a run asks, and tells, while it runs.
pub struct Hooks<'a, S> {
    /// Ends the run early as soon as it is true.
    pub stop: &'a dyn Fn() -> bool,
    /// How many messages the subscriber got by retransmission so far, if its transport counts that.
    pub recovered: fn(&mut S) -> Option<u64>,
    /// Told what happens, by the thread that receives.
    pub notify: &'a (dyn Fn(Notice<'_>) + Sync),
    /// Given the result before the ping lingers and closes.
    pub announce: &'a mut dyn FnMut(&PingResult),
}

impl<S> fmt::Debug for Hooks<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}

/// Why a ping, or a pong, failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PingError {
    /// The messages are too small for their times.
    #[error("-m {size} has no room for the times of sending: take -m {STAMP} or more")]
    TooSmall {
        /// The length asked for.
        size: usize,
    },
    /// The messages are longer than the transport's longest.
    #[error("-m {size} is too long: at most {longest} bytes with this window (see --window)")]
    TooLong {
        /// The length asked for.
        size: usize,
        /// The transport's longest.
        longest: usize,
    },
    /// No messages.
    #[error("-n 0 measures nothing: take -n 1 or more")]
    Nothing,
    /// The transport made no publisher, or no subscriber.
    #[error("cannot publish or subscribe")]
    Open(#[source] Box<dyn Error + Send + Sync>),
    /// A thread's CPU.
    #[error(transparent)]
    Pinning(#[from] PinningError),
    /// The receiving thread cannot be started.
    #[error("cannot start the receiving thread")]
    Thread(#[from] std::io::Error),
    /// A message was refused.
    #[error("a message was refused: {0}")]
    Refused(ClaimError),
    /// The stop flag was raised before there was a pong.
    #[error("stopped before a pong was there: start one with 'lanecast perf pong'")]
    NoSubscriber,
}
