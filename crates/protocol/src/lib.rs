//! The network protocols as state machines.
//!
//! Nothing here opens a socket, looks at a clock or throws a die: frames, times and seeds are
//! arguments. So a simulator can run any schedule, and a failure replays from its seed.
//!
//! - [`sender`]: a publisher's session, towards any number of receivers
//! - [`receiver`]: one session, as one subscriber receives it
//! - [`resolution`]: who publishes what, and where
//! - [`registry`]: the daemon that resolvers meet at where there is no group
#![forbid(unsafe_code)]

pub mod receiver;
pub mod resolution;
pub mod resolver_server;
pub mod rng;
pub mod round_trip;
pub mod sender;
pub mod sequence;

/// A time on the caller's clock, in nanoseconds; only differences mean anything.
pub type Nanos = u64;

/// A microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// A millisecond.
pub const MILLISECOND: Nanos = 1_000 * MICROSECOND;
/// A second.
pub const SECOND: Nanos = 1_000 * MILLISECOND;
