//! Deliveries of a receiver to the application, and its phase.

use lanecast_transport::{CloseReason, LossReason};

/// One delivery. Deliveries of a topic are in order; messages have the numbers of the sender's
/// count on the topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The session has this topic.
    Joined {
        /// The topic.
        slot: u32,
    },
    /// Items of whole messages in the caller's buffer.
    Borrowed {
        /// The topic.
        slot: u32,
        /// Number of the first message.
        first: u64,
        /// Offset of the first byte.
        start: u32,
        /// Offset after the last byte.
        end: u32,
    },
    /// Items of whole messages, copied because they had to wait.
    Owned {
        /// The topic.
        slot: u32,
        /// Number of the first message.
        first: u64,
        /// The items.
        items: Box<[u8]>,
    },
    /// A message reassembled from fragments.
    Message {
        /// The topic.
        slot: u32,
        /// Number of the message.
        number: u64,
        /// The message.
        bytes: Box<[u8]>,
    },
    /// Lost messages.
    Lost {
        /// The topic.
        slot: u32,
        /// Number of the first message.
        first: u64,
        /// Number of messages.
        count: u64,
        /// Reason of the loss.
        why: LossReason,
    },
    /// The last delivery of the topic.
    Left {
        /// The topic.
        slot: u32,
        /// Reason of the end.
        why: CloseReason,
    },
}

/// Phase of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for the Welcome.
    Joining,
    /// Joined.
    Live,
    /// The session is over.
    Closed,
}
