//! Notices about stores and messages in flight.

use lanecast_store::{PersistentSendError, STORE_VERSION, SendRefusal, StoreRefusal};
use std::fmt;

/// A notice for the person who measures. Its text is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreNotice {
    /// Stores have not answered yet; once a second.
    Waiting {
        /// Number of the stores.
        stores: usize,
        /// Stores that hold the stream, and were not named.
        unlisted: Vec<String>,
    },
    /// Enough stores have accepted an end.
    Registered {
        /// Topics of the end, separated by commas.
        topics: String,
        /// `publisher` or `subscriber`.
        end: &'static str,
    },
    /// A subscriber goes on where one with its id had come to.
    Resumed {
        /// The topic.
        topic: String,
        /// Sequence of the first message that was not consumed.
        next: u64,
    },
    /// A store no longer answers.
    StoreLost {
        /// Name of the store.
        store: String,
    },
    /// A store answers again.
    StoreBack {
        /// Name of the store.
        store: String,
    },
    /// A store speaks another version of the protocol.
    OtherVersion {
        /// Name of the store.
        store: String,
        /// Version of the store's protocol.
        version: u8,
    },
    /// A store does not keep a stream, or does not register a subscriber.
    Refused {
        /// Name of the store.
        store: String,
        /// Reason of the store.
        refusal: StoreRefusal,
    },
    /// Stores have not confirmed that a subscriber's registration has ended, and may keep messages
    /// for it.
    StillRegistered {
        /// The topic.
        topic: String,
        /// Names of the stores.
        stores: Vec<String>,
    },
    /// Another publisher took the stream over.
    Superseded,
    /// No message got further for a long time: the publisher gives up.
    Stalled {
        /// Messages in flight.
        messages: u64,
        /// Stores that do not answer.
        silent: Vec<String>,
        /// Cause of the stall.
        reason: StallReason,
    },
    /// A message was not sent, and cannot be: the publisher gives up.
    Unsent {
        /// Cause, in words.
        why: String,
    },
    /// The publisher waits at its end until nothing is in flight.
    Draining {
        /// Messages in flight.
        messages: u64,
    },
    /// Messages are still in flight, and no longer waited for.
    GaveUp,
    /// The publisher is gone, and no store confirms that nothing of it is missing.
    Unconfirmed,
    /// Messages that were handed out were never stable, and are no part of the stream.
    Discarded {
        /// Number of the messages.
        messages: u64,
    },
    /// A publisher on the topic whose messages no store keeps; they are left out.
    Unkept,
}

/// Causes of a publisher that gets no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallReason {
    /// Too few stores accept messages or have them on disk.
    NotStable,
    /// A registered receiver does not consume.
    NotConsumed,
    /// A subscriber, or a store, does not read: the transport has no room.
    NotRead,
}

impl StallReason {
    pub(super) const fn of(error: PersistentSendError) -> Self {
        match error {
            PersistentSendError::Transport(_) => Self::NotRead,
            PersistentSendError::Refused(SendRefusal::NotConsumed) => Self::NotConsumed,
            _ => Self::NotStable,
        }
    }
}

impl fmt::Display for StoreNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting { stores, unlisted } if unlisted.is_empty() => {
                write!(f, "Waiting for {stores} store registrations.")
            }
            Self::Waiting { unlisted, .. } => {
                let unlisted = unlisted.join(", ");
                write!(f, "Waiting for stores: {unlisted} hold the stream, too, and are not named.")
            }
            Self::Registered { topics, end } => {
                write!(f, "{topics}: {end} registered with its stores")
            }
            Self::Resumed { topic, next } => {
                write!(f, "{topic}: subscriber goes on at message {next}")
            }
            Self::StoreLost { store } => write!(f, "store {store} does not answer"),
            Self::StoreBack { store } => write!(f, "store {store} answers again"),
            Self::OtherVersion { store, version } => write!(
                f,
                "store {store} speaks version {version} of the stores' protocol, this program \
                 version {STORE_VERSION}: give both the same version of lanecast"
            ),
            Self::Refused { store, refusal } => write!(f, "store {store} refuses: {refusal}"),
            Self::StillRegistered { topic, stores } => write!(
                f,
                "{topic}: no answer from {} to the end of the subscriber's registration: end it by \
                 lanecast store deregister, or take an empty store",
                stores.join(", ")
            ),
            Self::Superseded => f.write_str("another publisher registered under the same id"),
            Self::Stalled { messages, reason: StallReason::NotConsumed, .. } => write!(
                f,
                "{messages} messages wait to be consumed by a registered receiver that does not \
                 read: start it, or take an empty store"
            ),
            Self::Stalled { reason: StallReason::NotRead, silent, .. } if silent.is_empty() => f
                .write_str(
                    "the transport has no room: a subscriber does not read; go on with it, or end \
                     it",
                ),
            Self::Stalled { reason: StallReason::NotRead, silent, .. } => {
                write!(f, "the transport has no room: no answer from {}", silent.join(", "))
            }
            Self::Stalled { messages, silent, .. } if silent.is_empty() => {
                write!(f, "{messages} messages do not become stable: see the stores' output")
            }
            Self::Stalled { messages, silent, .. } => {
                let silent = silent.join(", ");
                write!(f, "{messages} messages do not become stable: no answer from {silent}")
            }
            Self::Unsent { why } => write!(f, "a message was not sent: {why}"),
            Self::Draining { messages } => {
                write!(f, "Waiting for flight size {messages} to clear.")
            }
            Self::GaveUp => f.write_str("Giving up."),
            Self::Unconfirmed => {
                f.write_str("the publisher is gone, and no store confirms its last message")
            }
            Self::Discarded { messages } => {
                write!(f, "{messages} messages were never stable, and are void")
            }
            Self::Unkept => f.write_str(
                "a publisher without stores is on the topic: its messages are not counted",
            ),
        }
    }
}
