//! Basics that every other crate uses; this crate depends on none of them.
//!
//! - [`sync`]: the façade over atomics, which the model checker replaces;
//! - [`Position`]: a position in a byte stream, safe across wrap-around;
//! - [`CachePadded`]: a value on its own cache lines;
//! - [`CacheFlush`]: whether a reader writes the lines that it has read back to memory;
//! - [`budget`]: memory limits shared by several reservations;
//! - [`clock`]: ticks that two processes of a host can compare;
//! - [`simd`]: bit masks of the delimiters in a 64-byte block;
//! - [`WaitStrategy`], [`Waiter`]: spin, yield or park while there is no work;
//! - [`Agent`], [`AgentRunner`]: a duty cycle, and the thread that runs it;
//! - [`Size`], [`parse_duration`]: numbers with units.

mod agent;
pub mod budget;
mod cache_flush;
mod cache_padded;
pub mod clock;
mod position;
mod prefetch;
pub mod simd;
pub mod sync;
mod units;
mod wait;

pub use agent::{Agent, AgentRunner, run_until_stopped};
pub use cache_flush::CacheFlush;
pub use cache_padded::CachePadded;
pub use position::Position;
pub use prefetch::{prefetch, prefetch_for_writing};
pub use units::{Size, UnitError, format_duration, parse_duration};
pub use wait::{ParseWaitError, WaitStep, WaitStrategy, Waiter, spin};
