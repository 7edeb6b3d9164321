//! Settings of a receiver, and the bounds of a stream.

use super::range::{ReceiverEnd, ReceiverStart};
use crate::Nanos;
use crate::quorum::StoreGroups;

/// Settings of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiverSettings {
    /// The stores: the same as the publishers'. Those that hold a stream decide what is known of
    /// it, also if they are others.
    pub stores: StoreGroups,
    /// Beginning of streams of which nothing is consumed.
    pub start: ReceiverStart,
    /// Streams begin there even if this receiver has consumed more: messages come again. What it
    /// has acknowledged stays acknowledged.
    pub is_replay: bool,
    /// End of streams.
    pub end: ReceiverEnd,
    /// This receiver does not hold a receiver-paced publisher back: the stores keep its position,
    /// and it is told which messages are gone when it was too slow.
    pub is_non_blocking: bool,
    /// Lowest number of this life: more than that of every life before, such as the time of the
    /// start in microseconds since 1970. Stores take the word of the last life. Numbers that do not
    /// ascend are made to, as far as the stores that answer first know of others.
    pub life: u64,
    /// Most bytes of live messages of a stream that wait for those in front of them.
    pub cache_bytes: usize,
    /// Most bytes of messages in one answer of a store.
    pub fetch_bytes: u32,
    /// Interval of questions to the stores.
    pub retry: Nanos,
    /// Longest time from a consumption to its report. Many messages are reported before.
    pub report: Nanos,
}

impl ReceiverSettings {
    /// Settings with these stores, all others by default: 4 MiB of waiting messages, questions
    /// every 200 ms, reports every 10 ms.
    pub const fn new(stores: StoreGroups) -> Self {
        Self {
            stores,
            start: ReceiverStart::Oldest,
            is_replay: false,
            end: ReceiverEnd::Never,
            is_non_blocking: false,
            life: 0,
            cache_bytes: 4 << 20,
            fetch_bytes: 128 << 10,
            retry: 200_000_000,
            report: 10_000_000,
        }
    }
}

/// Bounds of a stream at a receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) cache_bytes: usize,
    pub(super) fetch_bytes: u32,
    pub(super) retry: Nanos,
}
