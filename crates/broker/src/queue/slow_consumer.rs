//! Reasons for which a slow consumer is disconnected.

use std::io;

/// Why a client that reads too slowly is disconnected; the text goes to the log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SlowConsumerReason {
    #[error("it reads too slowly: {0} bytes wait for it, which is more than may")]
    QueueFull(usize),
    #[error("it reads too slowly: its oldest message has waited longer than messages may")]
    MessageAge,
    #[error("it reads too slowly: too much waits for all clients together, most of it for this")]
    TotalMemory,
    #[error("it reads too slowly: too much was published before its query was answered")]
    QueryOverrun,
    #[error("it reads too slowly: it took nothing of its query's answer for long")]
    QueryStalled,
    #[error("it reads too slowly, and its messages cannot be written to disk: {0}")]
    Disk(io::Error),
}
