//! Why a message was not taken.

use lanecast_filter::fields::TooManyFields;
use lanecast_filter::malformed::Malformed;
use lanecast_filter::merge::DeltaError;
use lanecast_filter::path::Path;
use thiserror::Error;

/// Why a topic did not take a message, or could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TopicError {
    /// The message cannot be read.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A key field is missing or empty.
    #[error("the key field {0} is missing or empty: give it a value")]
    MissingKeyField(Path),
    /// The topic wants its publishers to supply keys.
    #[error("this topic has no key fields: supply a key with the message")]
    MissingKey,
    /// The topic makes keys of fields.
    #[error("this topic makes keys of the message's fields: supply none")]
    UnexpectedKey,
    /// A stored message has another key than it was stored with.
    #[error("by the key fields its key is another one")]
    KeyMismatch,
    /// More records than can be numbered.
    #[error("the topic is full: delete records, or let them expire")]
    Full,
    /// Too many records whose keys have the same checksum.
    #[error("too many keys with one checksum")]
    TooManyCollisions,
    /// The message cannot be merged into the record.
    #[error(transparent)]
    Delta(#[from] DeltaError),
    /// A subscription is to follow certain keys.
    #[error("a subscription follows a filter, not a list of keys: ask for the keys alone")]
    KeyListNotSupported,
    /// There is no such subscription.
    #[error("there is no subscription {0}")]
    NoSubscription(u32),
    /// More subscriptions than can be numbered.
    #[error("the topic has too many subscriptions: end some")]
    TooManySubscriptions,
    /// More fields than there is room for.
    #[error(transparent)]
    TooManyFields(#[from] TooManyFields),
}
