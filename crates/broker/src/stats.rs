//! Counters and latency.

pub(crate) mod counters;
pub(crate) mod latency;
