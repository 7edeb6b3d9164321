//! What can go wrong.

use lanecast_filter::FilterError;
use lanecast_filter::malformed::Malformed;
use lanecast_transport::ClaimError;

/// Why an end cannot be made; `E` is what the transport says.
#[derive(Debug, thiserror::Error)]
pub enum OpenError<E> {
    /// The transport cannot set it up.
    #[error(transparent)]
    Transport(E),
    /// The filter is none.
    #[error("bad filter: {0}")]
    Filter(FilterError),
    /// The filter asks for the time, which publishers do not have.
    #[error("the filter depends on the time: leave that to a content server")]
    Timely,
}

impl<E> From<FilterError> for OpenError<E> {
    fn from(error: FilterError) -> Self {
        Self::Filter(error)
    }
}

/// Why a message was not published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// It cannot be read, so nobody knows who wants it.
    #[error("bad message: {0}")]
    Malformed(Malformed),
    /// The transport does not take it, or not now.
    #[error(transparent)]
    Claim(#[from] ClaimError),
}

impl From<Malformed> for PublishError {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error)
    }
}
