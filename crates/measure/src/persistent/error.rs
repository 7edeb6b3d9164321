//! Failure to open a publisher or a subscriber.

use lanecast_store::OpenError;
use std::error::Error;
use std::time::Duration;
use thiserror::Error;

/// Failure to open a publisher or a subscriber.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreBackedError {
    /// The transport below, or a name.
    #[error("cannot use the stores")]
    Open(#[source] Box<dyn Error + Send + Sync>),
    /// Too few stores have accepted it.
    #[error(
        "no answer from {} of the stores within {patience:?}: start them with \
         'lanecast store NAME' in the same domain, or name others with --stores or \
         persistence.stores", stores.join(", ")
    )]
    NoStore {
        /// Stores that have not answered.
        stores: Vec<String>,
        /// The time that they were given.
        patience: Duration,
    },
    /// The stores have answered and the run was not accepted.
    #[error(
        "the stores do not accept this publisher: {} lost the data that others count on; restore \
         its directory, or wait until the others answer", wiped.join(", ")
    )]
    Wiped {
        /// Stores that answered with other data than the stream's.
        wiped: Vec<String>,
    },
    /// Too few of the stores that hold the stream are among those that were named.
    #[error(
        "too few of the stores that hold the stream have answered within {patience:?}: it is held \
         by {} as well, which {} not named; name all of them with --stores or persistence.stores \
         until the publisher is registered",
        unlisted.join(", "), if unlisted.len() == 1 { "was" } else { "were" }
    )]
    Unlisted {
        /// Stores that hold the stream, and were not named.
        unlisted: Vec<String>,
        /// The time that the others were given.
        patience: Duration,
    },
    /// Stores that are new to the stream have not copied it yet.
    #[error(
        "the stream is still copied to {} after {patience:?}: start again when that has come \
         further, or name fewer new stores at once", newcomers.join(", ")
    )]
    Copying {
        /// Stores that are new to the stream.
        newcomers: Vec<String>,
        /// The time that they were given.
        patience: Duration,
    },
    /// Subscriptions by pattern and by session have no durable form.
    #[error("a durable subscriber names its topics")]
    Selection,
    /// The stop flag was raised.
    #[error("stopped while waiting for the stores")]
    Stopped,
}

impl StoreBackedError {
    pub(super) fn of<E: Error + Send + Sync + 'static>(error: OpenError<E>) -> Self {
        Self::Open(Box::new(error))
    }
}
