//! Reports of the server about itself: counters, latency and lines for the log.

pub(crate) mod counters;
pub(crate) mod latency;
pub(crate) mod log;
