//! Events of subscriptions, and states of the connection.

use crate::error::ClientError;
use std::time::Duration;

/// A message with its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The topic.
    pub topic: String,
    /// Names of the matching subscriptions.
    pub subscriptions: Vec<String>,
    /// The publisher's correlation id, passed on unread.
    pub correlation: Option<String>,
    /// Key of its record, if the topic stores records.
    pub key: Option<u64>,
    /// The payload.
    pub body: Vec<u8>,
}

/// A stored record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Key within the topic.
    pub key: u64,
    /// The last message of that key.
    pub body: Vec<u8>,
}

/// An event of one or several subscriptions.
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
    /// All stored records were delivered; changes follow.
    Current {
        /// The subscription.
        subscription: String,
    },
    /// A record is out of focus (AMPS `oof`): it no longer matches, or is gone.
    OutOfFocus {
        /// The record and its subscriptions.
        message: Message,
        /// `match`, `deleted` or `expired`.
        reason: String,
    },
    /// The subscription was placed anew after a lost connection. Messages published in between may
    /// be missing. After a query all records follow in their present state: discard the old ones.
    Resumed {
        /// The subscription.
        subscription: String,
    },
    /// The server ended the subscription: it refused it after a lost connection, or cannot sort the
    /// records that the subscription begins with. It is not placed anew.
    Ended {
        /// The subscription.
        subscription: String,
        /// The reason.
        error: ClientError,
    },
}

impl Event {
    /// Names of the affected subscriptions.
    pub fn subscriptions(&self) -> &[String] {
        match self {
            Self::Message(message) | Self::OutOfFocus { message, .. } => &message.subscriptions,
            Self::Record { subscription, .. }
            | Self::Current { subscription }
            | Self::Resumed { subscription }
            | Self::Ended { subscription, .. } => std::slice::from_ref(subscription),
        }
    }

    /// Approximate memory of the event.
    pub(crate) fn bytes(&self) -> usize {
        let contents = match self {
            Self::Message(message) | Self::OutOfFocus { message, .. } => {
                message.topic.len() + message.body.len()
            }
            Self::Record { record, .. } => record.body.len(),
            Self::Current { .. } | Self::Resumed { .. } | Self::Ended { .. } => 0,
        };
        size_of::<Self>() + contents
    }
}

/// State of the connection.
#[derive(Clone, Debug)]
pub enum State {
    /// Connecting.
    Connecting {
        /// The server.
        server: String,
    },
    /// Connected and logged on.
    Connected {
        /// The server.
        server: String,
    },
    /// Disconnected; another attempt follows.
    Waiting {
        /// The wait before the attempt.
        backoff: Duration,
        /// The error of the last connection or attempt.
        error: ClientError,
    },
    /// Disconnected for good.
    Failed(ClientError),
}
