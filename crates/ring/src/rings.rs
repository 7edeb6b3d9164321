//! Rings of values in place: one producer or several, consumers in any topology.
//!
//! Consumers are added first: side by side, each of which sees every value, or one after others,
//! which it then never overtakes. Producers come last and never overtake the slowest.
//!
//! ```
//! use lanecast_ring::rings;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut build = rings::single_producer(1024, || 0_u64)?;
//! let mut journal = build.consumer()?;
//! let mut replica = build.consumer()?;
//! let mut logic = build.after(&[&journal, &replica])?; // A diamond.
//! let mut producer = build.producer()?;
//!
//! producer.push(7)?;
//! let mut seen = 0;
//! assert_eq!(logic.drain(64, |_| {}), 0, "the two before it have not read it yet");
//! journal.drain(64, |values| assert_eq!(values, [7]));
//! replica.drain(64, |values| assert_eq!(values, [7]));
//! logic.drain(64, |values| seen += values[0]);
//! assert_eq!(seen, 7);
//! # Ok(())
//! # }
//! ```
//!
//! | added by | type | sees | may |
//! |---|---|---|---|
//! | [`Rings::consumer`], [`Rings::after`] | [`Consumer`] | every value | read |
//! | [`Rings::exclusive_consumer`] | [`ExclusiveConsumer`] | every value | change, take out |
//! | [`Rings::workers`], [`Rings::workers_after`] | [`Worker`] | its part | change, take out |
//!
//! Several producers ([`multi_producer`]) have a lane each, so that none waits for another, and
//! consumers have an end in every lane: [`Lanes<Consumer<T>>`](Lanes),
//! [`Lanes<ExclusiveConsumer<T>>`], and the same [`Worker`]s. The values of each producer stay in
//! order. For one order among all producers, let one thread take from all lanes and publish to
//! another ring.
//!
//! ```
//! use lanecast_ring::rings;
//! use std::thread;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut build = rings::multi_producer(2, 64, || 0_u64)?;
//! let workers = build.workers(2)?;
//! let producers = build.producers()?;
//! let sum: u64 = thread::scope(|scope| {
//!     for mut producer in producers {
//!         scope.spawn(move || (1..=100).for_each(|value| drop(producer.push(value))));
//!     }
//!     let work = workers.into_iter().map(|mut worker| {
//!         scope.spawn(move || {
//!             let mut sum = 0;
//!             while !worker.is_closed() {
//!                 let work = worker.take(16, |run| sum += run.iter().sum::<u64>());
//!                 worker.wait(work);
//!             }
//!             sum
//!         })
//!     });
//!     work.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
//! });
//! assert_eq!(sum, 2 * 5050);
//! # Ok(())
//! # }
//! ```

pub use crate::builder::{Rings, single_producer, unicast};
pub use crate::consumer::Consumer;
pub use crate::error::{BuildError, Closed, PushError};
pub use crate::exclusive_consumer::ExclusiveConsumer;
pub use crate::handlers::{
    EventInfo, Handled, Handler, Handlers, Named, OnPanic, Panicked, Report, Stage, Staged,
    StartError, named,
};
pub use crate::lanes::Lanes;
pub use crate::multi::{MultiRings, multi_producer};
pub use crate::producer::{Claim, Producer};
pub use crate::worker::Worker;

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(test, loom))]
mod loom;
