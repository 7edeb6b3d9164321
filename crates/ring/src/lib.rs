//! Thread to thread: pipes, signals, and rings in every topology.

#![allow(dead_code, reason = "the rings are built on these next")]

mod asleep;
mod cursor;
