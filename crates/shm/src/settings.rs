//! Settings of a domain.

use crate::error::OpenError;
use lanecast_base::{Position, WaitStrategy};
use lanecast_os::Access;
use lanecast_wire::shm::{FRAME_ALIGN, SUBSCRIBERS_MAX, TOPICS_MAX, WINDOW_MAX, WINDOW_MIN};
use std::path::PathBuf;
use std::time::Duration;

/// The shortest time after which a slow subscriber is evicted.
pub const SLOW_CONSUMER_MIN: Duration = Duration::from_millis(1);

/// Settings of the shared-memory transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainSettings {
    /// Processes that can see the domain.
    pub visibility: Visibility,
    /// The domain's directory: publishers and subscribers with the same one find each other.
    /// With [`Visibility::Process`] it is only a name.
    pub directory: PathBuf,
    /// Users with access to the domain.
    pub access: Access,
    /// Length of a session's ring in bytes, rounded up to a power of two. The longest message is
    /// an eighth of it.
    pub window_bytes: u64,
    /// Most subscribers of a session, 1 to 64.
    pub subscribers_max: u32,
    /// Most topics of a session.
    pub topics_max: u32,
    /// Wait strategy of a publisher without space.
    pub publisher_wait: WaitStrategy,
    /// Wait strategy of a subscriber without messages.
    pub subscriber_wait: WaitStrategy,
    /// Longest time until the death of a process is detected.
    pub liveness: Duration,
    /// Policy for a live subscriber that does not read.
    pub slow_consumer: SlowConsumerPolicy,
    /// First position of a session, so that tests reach the wrap-around.
    #[doc(hidden)]
    pub first_position: u64,
    /// Whether subscribers join sessions of their own process directly. Tests and benchmarks of
    /// the path between processes turn it off.
    #[doc(hidden)]
    pub local_join: bool,
}

/// Processes that can see a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Visibility {
    /// All processes of the host with access to the directory. Within one process, publishers and
    /// subscribers join directly.
    #[default]
    Host,
    /// Only the calling process: sessions have no files, so other processes cannot find them.
    Process,
}

/// A publisher's policy for a live subscriber that does not read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowConsumerPolicy {
    /// Wait without limit.
    #[default]
    Wait,
    /// Evict the subscriber after it has blocked the publisher for this time, at least
    /// [`SLOW_CONSUMER_MIN`]. Of a time in which the publisher neither waited nor tried to send,
    /// 250 ms count at most.
    EvictAfter(Duration),
}

impl Default for DomainSettings {
    fn default() -> Self {
        Self {
            visibility: Visibility::Host,
            directory: default_directory(),
            access: Access::Owner,
            window_bytes: 1 << 20,
            subscribers_max: 64,
            topics_max: 64,
            publisher_wait: WaitStrategy::SpinPark,
            subscriber_wait: WaitStrategy::SpinPark,
            liveness: Duration::from_secs(1),
            slow_consumer: SlowConsumerPolicy::Wait,
            first_position: 0,
            local_join: true,
        }
    }
}

impl DomainSettings {
    /// Checks that each number lies within its bounds.
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
        if let SlowConsumerPolicy::EvictAfter(limit) = self.slow_consumer
            && limit < SLOW_CONSUMER_MIN
        {
            return Err(OpenError::SlowConsumer(limit));
        }
        Ok(())
    }

    pub(crate) const fn first_position(&self) -> Position {
        Position::new(self.first_position & !(FRAME_ALIGN - 1))
    }
}

/// The default directory, `/dev/shm/lanecast-<user>`: one domain per user.
pub fn default_directory() -> PathBuf {
    format!("/dev/shm/lanecast-{}", lanecast_os::process::own_user()).into()
}
