//! A day of a market that never was: orders, executions and quotes as FIX messages, as many as
//! wanted, and the same on every machine. Demonstrations, benchmarks and tests publish it.
//!
//! Each [`Step`] says in plain numbers what its message says in FIX, so that whoever wants to check
//! what a filter or a view made of the messages can work it out without reading any.
//!
//! ```
//! let mut day = lanecast_market::Day::new(1_000);
//! while let Some(step) = day.advance() {
//!     let (topic, message) = (step.act.topic(), day.message());
//!     assert!(message.starts_with(b"8=FIX.4.4\x01") && !topic.is_empty());
//! }
//! ```
#![forbid(unsafe_code)]

mod act;
mod book;
mod day;
mod fix;
mod numbers;
mod symbols;

pub use act::{Act, Execution, Order, Outcome, Quote, Side};
pub use day::{Day, Step};
pub use numbers::Numbers;
