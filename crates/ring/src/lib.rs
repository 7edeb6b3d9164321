//! Thread to thread: pipes, signals, and rings in every topology.
//!
//! - [`pipe`]: one writer, one reader, values that move; channels that also wait, and fan-in;
//! - [`signal`]: what wakes a reader, behind one interface;
//! - [`rings`]: values that stay in place, consumers in any topology, workers, handlers;
//! - [`bytes`]: the same for messages of any length.

mod asleep;
pub mod bytes;
mod claim;
mod consumer;
mod cursor;
mod error;
mod gates;
mod handlers;
mod hold_off;
mod lanes;
mod line;
mod multi;
pub mod pipe;
mod producer;
pub mod rings;
mod room;
mod share;
pub mod signal;
mod slots;
mod taker;
mod watch;
mod worker;
