//! What a client is told.

use crate::error::ClientError;
use std::time::Duration;

/// A message, and what it came by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The topic.
    pub topic: String,
    /// The names of the subscriptions that it is for.
    pub subscriptions: Vec<String>,
    /// What its publisher wanted handed on unread.
    pub correlation: Option<String>,
    /// The number of its record, if the topic's records are kept.
    pub key: Option<u64>,
    /// The message itself.
    pub body: Vec<u8>,
}

/// A record that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number within the topic.
    pub key: u64,
    /// The last message of it.
    pub body: Vec<u8>,
}

/// Something that concerns subscriptions.
#[derive(Clone, Debug)]
pub enum Event {
    /// A message, published since the subscription began.
    Message(Message),
    /// A record as it was when the subscription began, or when it was [resumed](Self::Resumed).
    Record {
        /// The subscription.
        subscription: String,
        /// The record.
        record: Record,
    },
    /// All records have been told; what follows has happened since.
    Current {
        /// The subscription.
        subscription: String,
    },
    /// A record is not among those that were asked for any more.
    Left {
        /// The record, and whom it concerns.
        message: Message,
        /// Why: `match`, `deleted` or `expired`.
        reason: String,
    },
    /// The connection broke, and the subscription has begun again. Messages that were published
    /// between what came before this and what follows may be missing. Where records were asked
    /// for, all of them follow, as they are now: forget those from before.
    Resumed {
        /// The subscription.
        subscription: String,
    },
    /// The subscription has ended against its owner's will.
    Ended {
        /// The subscription.
        subscription: String,
        /// Why.
        error: ClientError,
    },
}

impl Event {
    /// The subscriptions that it concerns.
    pub fn subscriptions(&self) -> &[String] {
        match self {
            Self::Message(message) | Self::Left { message, .. } => &message.subscriptions,
            Self::Record { subscription, .. }
            | Self::Current { subscription }
            | Self::Resumed { subscription }
            | Self::Ended { subscription, .. } => std::slice::from_ref(subscription),
        }
    }

    /// What it takes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        let contents = match self {
            Self::Message(message) | Self::Left { message, .. } => {
                message.topic.len() + message.body.len()
            }
            Self::Record { record, .. } => record.body.len(),
            Self::Current { .. } | Self::Resumed { .. } | Self::Ended { .. } => 0,
        };
        size_of::<Self>() + contents
    }
}

/// How the connection is.
#[derive(Clone, Debug)]
pub enum State {
    /// It is being made.
    Connecting {
        /// With which server.
        server: String,
    },
    /// It is there, and the server knows who the client is.
    Connected {
        /// With which server.
        server: String,
    },
    /// It is not there, and is tried again.
    Waiting {
        /// How soon.
        delay: Duration,
        /// Why it ended, or could not be made.
        error: ClientError,
    },
    /// It is not there, and is not tried again.
    Failed(ClientError),
}
