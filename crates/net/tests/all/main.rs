//! The integration tests of this crate, in one program.

mod adverts;
mod allocations;
mod groups;
mod interruptions;
mod jumbo;
mod packing;
mod panics;
mod peers;
mod rate;
mod reporting;
mod resolver;
mod sealing;
mod silent;
mod transports;
mod turns;
mod versions;
