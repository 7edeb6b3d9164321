//! Parameters and errors of pings and pongs.

use super::stamp::STAMP;
use crate::conditions::Setup;
use crate::linear::LinearShape;
use crate::names::named;
use crate::pinning::{Pinning, PinningError};
use lanecast_transport::ClaimError;
use serde::Serialize;
use std::error::Error;
use std::time::Duration;
use thiserror::Error;

/// The topics of both directions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Topics {
    /// Topic of the ping.
    pub ping: String,
    /// Topic of the pong.
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

/// Parameters of a ping.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The topics.
    pub topics: Topics,
    /// The length of each message, in bytes.
    pub size: usize,
    /// Number of measured messages.
    pub messages: u64,
    /// Messages a second; 0 for as many as possible.
    pub rate: u64,
    /// Number of warm-up messages.
    pub warmup: u64,
    /// Messages a second of the warm-up; 0 for as many as possible.
    pub warmup_rate: u64,
    /// The histogram that is printed.
    pub histogram: LinearShape,
    /// Whether messages are copied by the thread-safe call instead of being written in place.
    pub generic: bool,
    /// Number of threads.
    pub threads: Threads,
    /// CPU of the sending thread.
    pub sender: Pinning,
    /// CPU of the receiving thread, if it is another one, from the pong's arrival on.
    pub receiver: Pinning,
    /// Time limit for missing answers after each part, and for the pong to read everything at the
    /// end.
    pub linger: Duration,
    /// Whether the one thread polls its publisher's events while nothing is due, so that a
    /// publisher that keeps its way warm does it there.
    pub polls_publisher: bool,
    /// Conditions known before the run.
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

/// Errors of a ping or a pong.
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
