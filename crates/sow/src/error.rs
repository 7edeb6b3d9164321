//! Errors of topics and subscriptions.

use lanecast_filter::fields::TooManyFields;
use lanecast_filter::malformed::Malformed;
use lanecast_filter::merge::DeltaError;
use lanecast_filter::path::Path;
use thiserror::Error;

/// Refusal of a message, a query or a definition by a topic.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TopicError {
    /// The message is malformed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A key field is missing or empty.
    #[error("the key field {0} is missing or empty: give it a value")]
    MissingKeyField(Path),
    /// The topic has no key fields and the message no key.
    #[error("this topic has no key fields: supply a key with the message")]
    MissingKey,
    /// The topic has key fields and the message a key of its own.
    #[error("this topic makes keys of the message's fields: supply none")]
    UnexpectedKey,
    /// The publisher's key is longer than [`KEY_BYTES_MAX`](crate::KEY_BYTES_MAX).
    #[error("the key has {0} bytes: supply one of at most {max}", max = crate::KEY_BYTES_MAX)]
    KeyTooLong(usize),
    /// A stored message has another key than its entry says.
    #[error("the key fields give another key than the stored one")]
    KeyMismatch,
    /// The topic has as many records as it can.
    #[error("the topic is full: delete records, or let them expire")]
    Full,
    /// Too many keys with the same checksum.
    #[error("too many keys with one checksum")]
    TooManyCollisions,
    /// The message cannot be merged into the record.
    #[error(transparent)]
    Delta(#[from] DeltaError),
    /// The record would be longer than [`merged_bytes_max`] after the delta.
    ///
    /// [`merged_bytes_max`]: crate::TopicDefinition::merged_bytes_max
    #[error(
        "the record would have {bytes} bytes with this delta, and {max} are allowed: remove \
             fields, or publish it whole"
    )]
    MergedTooLong {
        /// Bytes of the merged record.
        bytes: usize,
        /// The most that are allowed.
        max: usize,
    },
    /// A subscription with a list of keys.
    #[error("a subscription has a filter, not a list of keys: query the keys without subscribing")]
    KeyListNotSupported,
    /// Unknown subscription.
    #[error("there is no subscription {0}")]
    NoSubscription(u32),
    /// The topic has as many subscriptions as it can.
    #[error("the topic has too many subscriptions: end some")]
    TooManySubscriptions,
    /// More fields than a topic can parse.
    #[error(transparent)]
    TooManyFields(#[from] TooManyFields),
}
