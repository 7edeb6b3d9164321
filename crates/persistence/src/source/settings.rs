//! Settings of a publisher, and its refusals.

use crate::Nanos;
use crate::quorum::StoreGroups;

/// Pace of a publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// The publisher: receivers that stay away for longer than messages are kept lose some, and are
    /// told which.
    #[default]
    Source,
    /// The registered receivers: messages are sent only while fewer than
    /// [`unconsumed_messages`](SourceSettings::unconsumed_messages) wait to be consumed by one of
    /// them.
    Receivers,
}

/// Settings of a publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSettings {
    /// The stores.
    pub stores: StoreGroups,
    /// The flight size: the most messages that are not stable.
    pub flight_messages: usize,
    /// The most bytes of them; also the longest message.
    pub flight_bytes: usize,
    /// Whether receivers hold the publisher back.
    pub pacing: Pacing,
    /// The most messages that are not consumed by all registered receivers, if these pace the
    /// publisher. They are at the stores: unlike the flight size, this takes no memory here.
    pub unconsumed_messages: u64,
    /// Interval of requests to each store.
    pub retry: Nanos,
    /// Longest frame of messages that are sent again, unless a message alone is longer.
    pub longest_frame: usize,
}

impl SourceSettings {
    /// Settings with these stores, all others by default: 10,000 messages or 4 MiB in flight, with
    /// receivers that pace 100,000 messages that are not consumed, requests every 200 ms.
    pub const fn new(stores: StoreGroups) -> Self {
        Self {
            stores,
            flight_messages: 10_000,
            flight_bytes: 4 << 20,
            pacing: Pacing::Source,
            unconsumed_messages: 100_000,
            retry: 200_000_000,
            longest_frame: 32 << 10,
        }
    }
}

/// Reasons why a message cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendRefusal {
    /// Too few stores have accepted the run so far.
    #[error("the stores have not accepted this publisher yet: wait for Registered")]
    NotRegistered,
    /// The flight size is reached: wait for [`SourceEvent::Stable`](crate::SourceEvent::Stable).
    #[error("too many messages are not stable yet")]
    FlightFull,
    /// Receivers hold the publisher back: wait for
    /// [`SourceEvent::Consumed`](crate::SourceEvent::Consumed).
    #[error("too many messages are not consumed by the registered receivers yet")]
    NotConsumed,
    /// The stream has used up its sequences.
    #[error("the stream has no sequences left: go on under another id")]
    Exhausted,
    /// Longer than the window.
    #[error("the message is longer than {longest} bytes: raise flight_bytes")]
    TooLong {
        /// The longest message.
        longest: usize,
    },
    /// Another publisher has taken over the stream.
    #[error("another publisher has registered under the same id")]
    Superseded,
}
