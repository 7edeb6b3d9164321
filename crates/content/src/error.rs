//! Errors of publishers and subscribers.

use lanecast_filter::FilterError;
use lanecast_filter::malformed::Malformed;
use lanecast_transport::ClaimError;

/// Failure to open a publisher or subscriber; `E` is the error of the transport.
#[derive(Debug, thiserror::Error)]
pub enum OpenError<E> {
    /// The transport failed.
    #[error(transparent)]
    Transport(E),
    /// The filter is malformed or exceeds its limits.
    #[error("bad filter: {0}")]
    Filter(FilterError),
    /// The filter depends on the time, which publishers do not evaluate.
    #[error("the filter depends on the time: leave that to a content server")]
    TimeDependent,
}

impl<E> From<FilterError> for OpenError<E> {
    fn from(error: FilterError) -> Self {
        Self::Filter(error)
    }
}

/// Failure to publish a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The message is malformed, so filters cannot be evaluated.
    #[error("bad message: {0}")]
    Malformed(Malformed),
    /// The transport has no room, or is closed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
}

impl From<Malformed> for PublishError {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error)
    }
}
