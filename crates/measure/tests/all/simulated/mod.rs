//! The whole experiment in simulated time: the same to the nanosecond at each run.

mod allocations;
mod experiment;
mod stalls;
mod tape;
