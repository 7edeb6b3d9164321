//! Thread to thread: pipes, signals, and rings in every topology.

#![allow(dead_code, reason = "pipes and lanes use the rest")]

mod asleep;
pub mod bytes;
mod claim;
mod consumer;
mod cursor;
mod error;
mod gates;
mod line;
mod producer;
pub mod rings;
mod slots;
mod taker;
