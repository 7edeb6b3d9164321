//! What a receiver hands on.

/// What a receiver hands on, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The session has this topic.
    Joined {
        /// The topic.
        slot: u32,
    },
    /// Items of whole messages in the caller's buffer.
    Run {
        /// The topic.
        slot: u32,
        /// The first byte.
        start: u32,
        /// The byte after the last.
        end: u32,
    },
    /// Items of whole messages, copied.
    Kept {
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

/// Why messages are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// They did not come within the time for recovery.
    GaveUp,
    /// The sender no longer keeps them.
    Gone,
    /// The sender did not wait for this receiver.
    Skipped,
    /// The sender has let this receiver go.
    Evicted,
    /// Too long for this receiver, or their pieces do not fit.
    Unreadable,
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The sender has closed it.
    Closed,
    /// The sender is silent.
    Died,
    /// This receiver stood still for too long.
    Evicted,
    /// The sender has no place for it.
    Refused,
}

/// How far a receiver has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is not in yet.
    Joining,
    /// It is in.
    Live,
    /// Nothing more comes.
    Over,
}
