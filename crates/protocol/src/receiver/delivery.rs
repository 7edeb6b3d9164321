//! What a receiver hands on.

use lanecast_transport::{CloseReason, LossReason};

/// What a receiver hands on, in this order.
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
        /// The first byte.
        start: u32,
        /// The byte after the last.
        end: u32,
    },
    /// Items of whole messages, copied.
    Owned {
        /// The topic.
        slot: u32,
        /// The items.
        items: Box<[u8]>,
    },
    /// A message, put together from its pieces.
    Message {
        /// The topic.
        slot: u32,
        /// The message.
        bytes: Box<[u8]>,
    },
    /// Messages that will not come.
    Lost {
        /// The topic.
        slot: u32,
        /// The first, counted from this receiver's first message on the topic.
        first: u64,
        /// How many; `None`: nobody can tell, it may be none at all.
        count: Option<u64>,
        /// Why.
        why: LossReason,
    },
    /// Nothing more comes on this topic.
    Left {
        /// The topic.
        slot: u32,
        /// Why.
        why: CloseReason,
    },
}

/// How far a receiver has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is not in yet.
    Joining,
    /// It is in.
    Live,
    /// Nothing more comes.
    Closed,
}
