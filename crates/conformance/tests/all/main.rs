//! The integration tests of this crate, in one program.

mod allocations;
mod processes;
mod shm;
mod thread;
