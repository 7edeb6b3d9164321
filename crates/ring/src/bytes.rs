//! Messages of any length between threads, written and read in place.
//!
//! A lane is a ring of bytes with one writer. Frames lie in it one after the other, 8 bytes of
//! length and then the message, each aligned to 8; one that would run over the end starts anew at
//! the beginning, so no message is ever split. Positions count bytes since the start, and what the
//! producer's cursor has passed is there: publication is one store, for a message or for many.
//!
//! Several producers are several lanes, and every consumer reads all of them: producers never meet,
//! and the claim that one of them forgets holds up nobody else. Order is kept for each producer.
//!
//! ```
//! use lanecast_ring::bytes;
//! let mut build = bytes::single_producer(4096)?;
//! let mut log = build.consumer(); // Sees everything,
//! let mut act = build.after(&[&log])?; // and this one only what the log is done with.
//! let mut producer = build.producer()?;
//!
//! let mut claim = producer.try_claim(5)?;
//! claim.copy_from_slice(b"hello");
//! claim.commit();
//! producer.offer(b"world")?;
//!
//! assert_eq!(act.poll(10, |_| ()), 0);
//! assert_eq!(log.poll(10, |_| ()), 2);
//! let mut said = Vec::new();
//! assert_eq!(act.poll(10, |message| said.extend_from_slice(message)), 2);
//! assert_eq!(said, b"helloworld");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod build;
mod consumer;
mod frame_memory;
mod lane_reader;
#[cfg(all(test, loom))]
mod loom;
mod producer;

pub use crate::error::BuildError;
pub use build::{ByteRing, Many, One, multi_producer, single_producer};
pub use consumer::ByteConsumer;
pub use producer::{ByteBatch, ByteClaim, ByteProducer, ClaimError};
