//! Events of a publisher: subscribers that came and went, and room after back-pressure.

use core::fmt;

/// An event of a publisher, given to the handler of
/// [`Publish::poll_events`](crate::Publish::poll_events).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum PublisherEvent<'a> {
    /// A subscriber joined: once per subscriber, before its `SubscriberLeft`.
    SubscriberJoined(&'a SubscriberInfo),
    /// A subscriber is gone: once per subscriber, after its `SubscriberJoined`.
    SubscriberLeft(&'a SubscriberInfo, DepartureReason),
    /// There is room again for a claim that was refused as back-pressured: once per refusal. A
    /// claim that is refused after this event leads to another one.
    Writable,
}

/// Id of a subscriber, unique within the publisher's session. A subscriber that was removed and
/// joins again has a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriberId(pub u64);

impl fmt::Display for SubscriberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// A subscriber, as its publisher sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriberInfo {
    /// Id within the session.
    pub id: SubscriberId,
    /// Address for people: `shm:3` (the slot), or `10.0.0.7:41002`.
    pub address: String,
    /// Process id, in the subscriber's own namespace, if the transport knows it.
    pub pid: Option<u32>,
    /// Name of the process, if the transport knows it.
    pub name: Option<String>,
}

impl fmt::Display for SubscriberInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address)?;
        match (&self.name, self.pid) {
            (Some(name), Some(pid)) => write!(f, " ({name}, pid {pid})"),
            (Some(name), None) => write!(f, " ({name})"),
            (None, Some(pid)) => write!(f, " (pid {pid})"),
            (None, None) => Ok(()),
        }
    }
}

/// Reasons of a subscriber's departure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DepartureReason {
    /// The subscriber left by itself.
    Left,
    /// The subscriber's process ended without leaving.
    Died,
    /// The subscriber was silent for longer than the liveness time: its process ended or stood
    /// still, or the network was cut.
    TimedOut,
    /// The publisher evicted the subscriber, which had stalled.
    Evicted,
    /// The publisher evicted the subscriber, whose position in the shared memory was damaged.
    Damaged,
}

impl DepartureReason {
    /// The reason in words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Died => "died",
            Self::TimedOut => "timed out",
            Self::Evicted => "evicted",
            Self::Damaged => "damaged",
        }
    }
}

impl fmt::Display for DepartureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.describe())
    }
}
