//! Floor of the house: what every other crate stands on and nothing above a topic may enter.
//!
//! - [`sync`]: the one façade over atomics, which the model checker replaces;
//! - [`Position`]: a place in a stream of bytes, safe across wrap-around;
//! - [`Pad`]: a value on cache lines of its own;
//! - [`budget`]: memory that is bounded for several at once;
//! - [`clock`]: ticks that two processes of a host can compare;
//! - [`mask`]: where in 64 bytes certain bytes stand;
//! - [`WaitStrategy`], [`Waiter`]: what to do when there is nothing to do;
//! - [`Agent`], [`Runner`]: a duty cycle, and the thread that turns it;
//! - [`Size`], [`parse_duration`]: numbers with units.

mod agent;
pub mod budget;
pub mod clock;
pub mod mask;
mod pad;
mod position;
mod prefetch;
pub mod sync;
mod units;
mod wait;

pub use agent::{Agent, Runner};
pub use pad::Pad;
pub use position::Position;
pub use prefetch::prefetch_for_writing;
pub use units::{Size, UnitError, format_duration, parse_duration};
pub use wait::{ParseWaitError, Step, WaitStrategy, Waiter, spin};
