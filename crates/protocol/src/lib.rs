//! The network protocols as state machines, without sockets, clocks or threads.
//!
//! Frames, times and seeds are arguments, so that a simulator can run any schedule, and a failure
//! replays from its seed. `lanecast-net` runs the state machines on real sockets.
//!
//! - [`resolution`]: finds which sessions publish a topic, in a multicast group or by a server
//! - [`resolver_server`]: the server that resolvers connect to where multicast is not available
//! - [`sender`]: a publisher's session towards any number of receivers
//! - [`receiver`]: one session, as one subscriber receives it
//! - [`fec`]: the code of their parity, which rebuilds lost datagrams
#![forbid(unsafe_code)]

pub mod fec;
pub mod receiver;
pub mod resolution;
pub mod resolver_server;
pub mod rng;
pub mod round_trip;
pub mod sender;
pub mod sequence;

/// Time on the caller's clock, in nanoseconds; only differences matter.
pub type Nanos = u64;

/// One microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// One millisecond.
pub const MILLISECOND: Nanos = 1_000 * MICROSECOND;
/// One second.
pub const SECOND: Nanos = 1_000 * MILLISECOND;
