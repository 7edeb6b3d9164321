//! What a domain can be told.

use crate::error::OpenError;
use lanecast_base::{Position, WaitStrategy};
use lanecast_os::Access;
use lanecast_wire::shm::{FRAME_ALIGN, SUBSCRIBERS_MAX, TOPICS_MAX, WINDOW_MAX, WINDOW_MIN};
use std::path::PathBuf;
use std::time::Duration;

/// Settings of the transports that share memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How far the domain reaches.
    pub reach: Reach,
    /// The domain's directory: publishers and subscribers with the same one find each other.
    /// Within one process it is a mere name.
    pub directory: PathBuf,
    /// Who may use the domain.
    pub access: Access,
    /// The ring of a session, in bytes; rounded up to a power of two. A message may take an
    /// eighth of it.
    pub window_bytes: u64,
    /// The most subscribers of a session, 1 to 64.
    pub subscribers_max: u32,
    /// The most topics of a session.
    pub topics_max: u32,
    /// How a publisher waits for room.
    pub publisher_wait: WaitStrategy,
    /// How a subscriber waits for messages.
    pub subscriber_wait: WaitStrategy,
    /// How soon the death of a process is noticed, at the latest.
    pub liveness: Duration,
    /// What becomes of a subscriber that lives but does not read.
    pub stalled: Stalled,
    /// Where a session's positions start, so that tests can run them through their wrap.
    #[doc(hidden)]
    pub first_position: u64,
    /// Whether ends in one process meet directly, so that tests and benchmarks can have both
    /// ends of the way between processes in one.
    #[doc(hidden)]
    pub direct: bool,
}

/// How far a domain reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// All processes of the host that may use its directory. Ends in one process meet directly.
    #[default]
    Host,
    /// The calling process: sessions have no files, and nobody outside can find them.
    Process,
}

/// What a publisher does about a subscriber that lives but does not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stalled {
    /// Waits for it, as long as it takes.
    #[default]
    Wait,
    /// Takes its place away after it has held the publisher up for so long.
    EvictAfter(Duration),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            reach: Reach::Host,
            directory: default_directory(),
            access: Access::Owner,
            window_bytes: 1 << 20,
            subscribers_max: 64,
            topics_max: 64,
            publisher_wait: WaitStrategy::SpinPark,
            subscriber_wait: WaitStrategy::SpinPark,
            liveness: Duration::from_secs(1),
            stalled: Stalled::Wait,
            first_position: 0,
            direct: true,
        }
    }
}

impl Settings {
    /// Whether each number lies within its bounds.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        if !(WINDOW_MIN..=WINDOW_MAX).contains(&self.window_bytes) {
            return Err(OpenError::Window(self.window_bytes));
        }
        if !(1..=SUBSCRIBERS_MAX).contains(&self.subscribers_max) {
            return Err(OpenError::Subscribers(self.subscribers_max));
        }
        if !(1..=TOPICS_MAX).contains(&self.topics_max) {
            return Err(OpenError::Topics(self.topics_max));
        }
        Ok(())
    }

    pub(crate) const fn first_position(&self) -> Position {
        Position::new(self.first_position & !(FRAME_ALIGN - 1))
    }
}

/// `/dev/shm/lanecast-<user>`: one domain per user unless told otherwise.
pub fn default_directory() -> PathBuf {
    format!("/dev/shm/lanecast-{}", lanecast_os::process::own_user()).into()
}
