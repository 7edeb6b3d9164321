//! Events of a durable receiver.

/// An event of a receiver that gets what it missed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiverEvent<'a> {
    /// A stream of the topic begins here, before its other events.
    Started {
        /// The publisher's stable id.
        source: u64,
        /// Sequence of the first message to come.
        next: u64,
        /// Whether the receiver goes on where it had come to in an earlier life.
        is_resumed: bool,
    },
    /// A message: each sequence of a stream once, in order.
    Message {
        /// The publisher's stable id.
        source: u64,
        /// Sequence in the stream.
        sequence: u64,
        /// The payload.
        bytes: &'a [u8],
        /// The message came from a store.
        is_recovered: bool,
    },
    /// Messages are lost: no store has kept them long enough.
    Lost {
        /// The publisher's stable id.
        source: u64,
        /// Sequence of the first.
        first: u64,
        /// How many.
        count: u64,
    },
    /// Messages that were handed out are no part of the stream: their publisher died before they
    /// were stable. Sequences begin anew at `first`: others follow, or in rare cases the same
    /// again.
    Discarded {
        /// The publisher's stable id.
        source: u64,
        /// Sequence of the first.
        first: u64,
        /// How many.
        count: u64,
    },
    /// Everything that was missed has been handed out: live messages follow.
    CaughtUp {
        /// The publisher's stable id.
        source: u64,
        /// Sequence of the next message.
        next: u64,
    },
    /// Enough stores know that the messages before `next` are consumed: none of them comes again.
    Acknowledged {
        /// The publisher's stable id.
        source: u64,
        /// Sequence of the first message that may come again.
        next: u64,
    },
    /// A message of a publisher whose messages no store keeps, as it comes.
    Unkept {
        /// The publisher's session.
        session: u64,
        /// The message's number on its topic.
        number: u64,
        /// The payload.
        bytes: &'a [u8],
    },
    /// Messages of a publisher whose messages no store keeps were lost.
    UnkeptLost {
        /// The publisher's session.
        session: u64,
        /// Number of the first on its topic.
        first: u64,
        /// How many.
        count: u64,
    },
    /// Too few stores have answered to know where a stream goes on. Told again when it changes.
    Waiting {
        /// Stores that have not answered.
        silent: Vec<String>,
    },
    /// A store no longer answers.
    StoreLost {
        /// The store.
        store: String,
    },
    /// A store answers again.
    StoreBack {
        /// The store.
        store: String,
    },
}
