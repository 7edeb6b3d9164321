//! Every header that leaves a process or outlives it, as bytes. No I/O.
//!
//! Little-endian, explicit offsets, a version in each file. The twin of `docs/protocol/`, which
//! is normative; a test compares the two.

#[cfg(target_endian = "big")]
compile_error!("shared memory is little-endian: this processor would misread it");

pub mod checksum;
pub mod command;
pub mod content;
pub mod group;
pub mod journal;
pub mod net;
pub mod shm;
pub mod state;
pub mod stats;
pub mod store;
