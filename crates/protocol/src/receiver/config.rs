//! Configuration of a receiver.

use crate::{Nanos, SECOND};

/// Configuration of a [`Receiver`](super::Receiver).
#[derive(Clone, Debug)]
pub struct ReceiverSettings {
    /// Random number of the receiver, new for each session.
    pub receiver: u64,
    /// Receive window: datagrams accepted beyond those that the application has read.
    pub window_datagrams: u32,
    /// Most bytes kept out of order, waiting for missing datagrams.
    pub reorder_bytes_max: usize,
    /// Time for which a missing datagram is requested before it counts as lost.
    pub recovery: Nanos,
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
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for ReceiverSettings {
    fn default() -> Self {
        Self {
            receiver: 1,
            window_datagrams: 4_096,
            reorder_bytes_max: 8 << 20,
            recovery: 10 * SECOND,
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
