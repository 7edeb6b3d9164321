//! Thread to thread: pipes, signals, and rings in every topology.
//!
//! - [`pipe`]: one writer, one reader, values that move; channels that also wait, and fan-in;
//! - [`signal`]: what wakes a reader, behind one interface;
//! - [`rings`]: values that stay in place, consumers in any topology, workers, handlers;
//! - [`bytes`]: the same for messages of any length.

mod builder;
pub mod bytes;
mod consumer;
mod cursor;
mod error;
mod exclusive_consumer;
mod gating;
mod handlers;
mod lanes;
mod multi;
mod park_flag;
pub mod pipe;
mod producer;
mod producer_barrier;
mod producer_lane;
mod reader_throttle;
pub mod rings;
pub mod signal;
mod sleep_leader;
mod slots;
mod work_claim;
mod worker;
