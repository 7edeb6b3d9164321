//! Configuration of a receiver.

use super::gap_tracker::GapTimes;
use crate::{Nanos, SECOND};

/// Order in which a topic's messages are delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeliveryOrder {
    /// That of publication: messages behind a gap wait until it is filled or given up.
    #[default]
    Publication,
    /// That of arrival: messages behind a gap are delivered at once, missing ones when they come,
    /// and a loss is reported when it is certain. Every message comes once or is reported.
    Arrival,
}

/// Configuration of a [`Receiver`](super::Receiver).
#[derive(Clone, Debug)]
pub struct ReceiverSettings {
    /// Number of the receiver, new for each session: a secret of it and the sender, from a secure
    /// source of randomness.
    pub receiver: u64,
    /// Receive window: datagrams accepted beyond those that the application has read.
    pub window_datagrams: u32,
    /// Most bytes kept out of order, waiting for missing datagrams.
    pub reorder_bytes_max: usize,
    /// Time for which a missing datagram is requested before it counts as lost.
    pub recovery: Nanos,
    /// Longest time that later messages wait for a missing datagram, if that is shorter than
    /// `recovery`: it then counts as lost. Data from before the join has the recovery time.
    pub give_up_after: Option<Nanos>,
    /// Order of the messages of a topic.
    pub order: DeliveryOrder,
    /// Silence after which the sender counts as dead, unless its Welcome sets another.
    pub liveness: Nanos,
    /// Time that a gap may be mere reordering before it is requested.
    pub reorder: Nanos,
    /// Tag for flow control by tag, or 0.
    pub tag: u32,
    /// Begins with the oldest datagram that the sender retains.
    pub late_join: bool,
    /// Frames come by a stream, so missing ones are never requested.
    pub stream: bool,
    /// Longest message accepted, in bytes.
    pub longest_message_max: usize,
    /// Datagrams come by multicast.
    pub multicast: bool,
    /// Seed of random times, another one for each receiver.
    pub seed: u64,
}

impl Default for ReceiverSettings {
    fn default() -> Self {
        Self {
            receiver: 1,
            window_datagrams: 4_096,
            reorder_bytes_max: 8 << 20,
            recovery: 10 * SECOND,
            give_up_after: None,
            order: DeliveryOrder::Publication,
            liveness: SECOND,
            reorder: 0,
            tag: 0,
            late_join: false,
            stream: false,
            longest_message_max: 64 << 20,
            multicast: false,
            seed: 1,
        }
    }
}

impl ReceiverSettings {
    /// Times after which gaps are given up.
    pub(super) fn gap_times(&self) -> GapTimes {
        let live = self.give_up_after.map_or(self.recovery, |after| after.min(self.recovery));
        GapTimes { live, history: self.recovery }
    }
}
