//! Errors of opening publishers and subscribers.

use lanecast_filter::FilterError;

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
    /// The patterns of the filter exceed the limits of this subscriber's own settings.
    #[error("bad filter: {0}")]
    Limits(String),
}

impl<E> From<FilterError> for OpenError<E> {
    fn from(error: FilterError) -> Self {
        Self::Filter(error)
    }
}
