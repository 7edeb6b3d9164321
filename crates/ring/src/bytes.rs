//! Messages of any length between threads, written and read in place.
//!
//! A lane is a ring of bytes with one writer. Frames follow one another, 8 bytes of length and then
//! the message, each aligned to 8; a frame that would cross the end starts at the beginning
//! instead, so no message is split. Positions count bytes since the start, and the bytes before the
//! producer's cursor are published: one store publishes a message or many.
//!
//! Each of several producers has its own lane, and every consumer reads all of them: producers do
//! not contend, and an abandoned claim of one does not block the others. Order is kept per
//! producer.
//!
//! ```
//! use lanecast_ring::bytes;
//! let mut build = bytes::single_producer(4096)?;
//! let mut log = build.consumer(); // Sees everything,
//! let mut act = build.after(&[&log])?; // and this one only messages that the log has read.
//! let mut producer = build.producer()?;
//!
//! let mut claim = producer.try_claim(5)?;
//! claim.copy_from_slice(b"hello");
//! claim.commit();
//! producer.try_send(b"world")?;
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
#[cfg(all(test, not(loom)))]
mod tests;

pub use crate::error::BuildError;
pub use build::{ByteRing, Many, One, multi_producer, single_producer};
pub use consumer::ByteConsumer;
pub use producer::{ByteBatch, ByteClaim, ByteProducer, ClaimError};
