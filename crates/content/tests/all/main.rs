//! The integration tests of this crate, in one program.

mod blocked;
mod contracts;
mod descriptor;
mod direct;
mod numbers;
mod packing;
mod runs;
mod stage;
mod suite;
mod versions;
