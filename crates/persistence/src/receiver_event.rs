//! Events of a durable receiver.
//!
//! The names are those of a transport's events, and mean the same of a stream that outlives its
//! publisher's sessions.

use core::fmt;
use lanecast_wire::store::StoreRefusal;

/// A message of a stream that stores keep. Its bytes are valid inside the handler's call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PersistentMessage<'a> {
    source: u64,
    sequence: u64,
    bytes: &'a [u8],
    is_recovered: bool,
}

impl<'a> PersistentMessage<'a> {
    /// Message `sequence` of the stream of `source`; made by receivers.
    #[inline]
    pub const fn new(source: u64, sequence: u64, bytes: &'a [u8], is_recovered: bool) -> Self {
        Self { source, sequence, bytes, is_recovered }
    }

    /// The publisher's stable id.
    #[inline]
    pub const fn source(&self) -> u64 {
        self.source
    }

    /// Sequence in the stream, from 0 on, over all runs of the publisher.
    #[inline]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The payload.
    #[inline]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether the message came from a store, because this receiver had missed it. A receiver that
    /// died before it acknowledged may have been handed it in its earlier life.
    #[inline]
    pub const fn is_recovered(&self) -> bool {
        self.is_recovered
    }
}

impl ReceiverEvent<'_> {
    /// The event, with nothing in place of a payload.
    #[must_use]
    pub fn without_payload(self) -> ReceiverEvent<'static> {
        match self {
            Self::Message(PersistentMessage { source, sequence, is_recovered, .. }) => {
                let message = PersistentMessage::new(source, sequence, &[], is_recovered);
                ReceiverEvent::Message(message)
            }
            Self::Unkept { session, number, .. } => {
                ReceiverEvent::Unkept { session, number, bytes: &[] }
            }
            Self::Joined { source, next, is_resumed } => {
                ReceiverEvent::Joined { source, next, is_resumed }
            }
            Self::Lost { source, first, count, why } => {
                ReceiverEvent::Lost { source, first, count, why }
            }
            Self::Discarded { source, first, count } => {
                ReceiverEvent::Discarded { source, first, count }
            }
            Self::Recovered { source, next } => ReceiverEvent::Recovered { source, next },
            Self::Left { source, next } => ReceiverEvent::Left { source, next },
            Self::Ended { source, next } => ReceiverEvent::Ended { source, next },
            Self::Acknowledged { source, next } => ReceiverEvent::Acknowledged { source, next },
            Self::Expired { source } => ReceiverEvent::Expired { source },
            Self::UnkeptLost { session, first, count } => {
                ReceiverEvent::UnkeptLost { session, first, count }
            }
            Self::Refused { source, store, refusal } => {
                ReceiverEvent::Refused { source, store, refusal }
            }
            Self::TooManyStreams { count, most } => ReceiverEvent::TooManyStreams { count, most },
            Self::Unsettled { source, store } => ReceiverEvent::Unsettled { source, store },
            Self::Waiting { silent } => ReceiverEvent::Waiting { silent },
            Self::StoreLost { store } => ReceiverEvent::StoreLost { store },
            Self::StoreBack { store } => ReceiverEvent::StoreBack { store },
            Self::OtherVersion { store, version } => ReceiverEvent::OtherVersion { store, version },
        }
    }
}

impl fmt::Debug for PersistentMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersistentMessage")
            .field("source", &self.source)
            .field("sequence", &self.sequence)
            .field("length", &self.bytes.len())
            .field("is_recovered", &self.is_recovered)
            .finish()
    }
}

/// Reasons why a durable receiver loses messages for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DurableLoss {
    /// Retention has removed them at every store.
    Expired,
    /// Their publisher ended, and none of so many stores that hold the stream has them that they
    /// were not stable. Another one may still bring them to a later run.
    NotStored,
}

impl DurableLoss {
    /// The reason in words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Expired => "no store keeps them any more",
            Self::NotStored => "the publisher ended before a store had them",
        }
    }
}

/// An event of a receiver that gets what it missed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiverEvent<'a> {
    /// A stream of the topic begins here: once, before its other events.
    Joined {
        /// The publisher's stable id.
        source: u64,
        /// Sequence of the first message to come.
        next: u64,
        /// Whether the receiver goes on where it had come to in an earlier life.
        is_resumed: bool,
    },
    /// A message: each sequence of a stream once, in order.
    Message(PersistentMessage<'a>),
    /// Messages are lost, before any later one of the stream.
    Lost {
        /// The publisher's stable id.
        source: u64,
        /// Sequence of the first.
        first: u64,
        /// Number of messages.
        count: u64,
        /// The reason.
        why: DurableLoss,
    },
    /// Messages that were handed out are no part of the stream: their publisher died before they
    /// were stable. Sequences begin anew at `first`: others follow, or in rare cases the same
    /// again.
    Discarded {
        /// The publisher's stable id.
        source: u64,
        /// Sequence of the first.
        first: u64,
        /// Number of messages.
        count: u64,
    },
    /// Everything that was missed has been handed out: live messages follow.
    Recovered {
        /// The publisher's stable id.
        source: u64,
        /// Sequence of the next message.
        next: u64,
    },
    /// The publisher's session has ended, and everything that enough stores know of it has been
    /// handed out.
    /// The stream stays: the publisher's next run goes on with it. After messages of a run this
    /// comes before those of the next one, however soon that begins.
    Left {
        /// The publisher's stable id.
        source: u64,
        /// Sequence of the next message.
        next: u64,
    },
    /// Everything up to the receiver's end was handed out: nothing more of this stream comes,
    /// unless its last messages are discarded.
    Ended {
        /// The publisher's stable id.
        source: u64,
        /// Sequence of the first message that was not wanted.
        next: u64,
    },
    /// Enough stores know that the messages before `next` are consumed: none of them comes again.
    Acknowledged {
        /// The publisher's stable id.
        source: u64,
        /// Sequence of the first message that may come again.
        next: u64,
    },
    /// This receiver was away for longer than registrations live at its stores: they kept its
    /// position and nothing else for it. From here on it counts again; messages that are gone are
    /// told as lost.
    Expired {
        /// The publisher's stable id.
        source: u64,
    },
    /// A store does not register this receiver in a stream: it keeps nothing for it, and tells a
    /// later life nothing of this one. Messages are handed out all the same, and the store is asked
    /// again, so that it registers the receiver when it has room. Once for each store and reason.
    Refused {
        /// The publisher's stable id.
        source: u64,
        /// The store.
        store: String,
        /// The reason.
        refusal: StoreRefusal,
    },
    /// A store has a stream and has not told its state for long: its last records of the stream are
    /// not on its disk, which is full or slow, or it still looks up the times that are asked for.
    /// The others decide without it if they are enough, and other streams go on. Once until the
    /// store has told it.
    Unsettled {
        /// The publisher's stable id.
        source: u64,
        /// The store.
        store: String,
    },
    /// The topic has more streams than a receiver takes: of those beyond, nothing is fetched or
    /// reported, and their messages come as [`Unkept`](Self::Unkept). Told again when they are
    /// more. Divide the publishers among several topics.
    TooManyStreams {
        /// Streams of a store that found no room.
        count: u32,
        /// Streams that a receiver takes.
        most: u32,
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
    /// Messages of a publisher whose messages no store keeps were lost; or, if tens of thousands of
    /// publishers wait for the stores' answer, of one of which that is not known yet.
    UnkeptLost {
        /// The publisher's session.
        session: u64,
        /// Number of the first on its topic.
        first: u64,
        /// Number of messages.
        count: u64,
    },
    /// Too few stores have answered to know where a stream goes on, or whether anything is missing
    /// in front of the end of a session. Told again when it changes.
    Waiting {
        /// Stores that have not answered, have other data than the member of their name, or hold
        /// the stream and are not named by this receiver.
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
    /// A store speaks another version of the protocol, and counts as one that does not answer: give
    /// both programs the same version of lanecast. Once for each store and version.
    OtherVersion {
        /// The store.
        store: String,
        /// Version of the store's protocol.
        version: u8,
    },
}
