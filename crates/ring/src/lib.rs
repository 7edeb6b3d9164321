//! Thread to thread: pipes, signals, and rings in every topology.

#![allow(dead_code, reason = "pipes and lanes use the rest")]

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
