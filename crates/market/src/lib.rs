//! A synthetic market day: orders, executions and quotes as FIX messages, reproducible on every
//! machine. Demonstrations, benchmarks and tests publish it.
//!
//! `day` drives the order book (`book`) and encodes each [`Step`] as FIX (`fix`). A step contains
//! the same data as its message in plain numbers, so tests can compute expected results without
//! parsing.
//!
//! ```
//! let mut day = lanecast_market::Day::new(1_000);
//! while let Some(step) = day.advance() {
//!     let (topic, message) = (step.event.topic(), day.message());
//!     assert!(message.starts_with(b"8=FIX.4.4\x01") && !topic.is_empty());
//! }
//! ```
#![forbid(unsafe_code)]

mod book;
mod day;
mod event;
mod fix;
mod rng;
mod symbols;

pub use day::Day;
pub use event::{ExecType, Execution, MarketEvent, Order, Quote, Side, Step};
pub use rng::Rng;
